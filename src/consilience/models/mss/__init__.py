"""MSS, multi-source sensing: groups of dependent sources, and the truth among their claims."""
