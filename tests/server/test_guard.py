"""Who may ask, from where and how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from consilience.server.guard import MOST_BODY, allowed_hosts, is_local
from tests.server.conftest import Client, Open

TOKEN = "correct horse battery staple"
ANSWER = {"number": 0, "value": "Algiers"}


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8750", 200), ("localhost:8750", 200), ("[::1]:8750", 200), ("LOCALHOST", 200),
        ("evil.example", 421), ("127.0.0.1.evil.example:8750", 421), ("", 421), ("[", 421), ("localhost@evil", 421),
    ],
)  # fmt: skip
def test_only_names_of_this_machine_are_answered(reader: Client, host: str, status: int) -> None:
    assert reader.get("/", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Consilience": ""},
    ],
)
def test_other_sites_change_nothing(reader: Client, headers: dict[str, str]) -> None:
    assert reader.post("/api/reviews", json=ANSWER, headers=headers).status_code == 403
    assert reader.get("/api/reviews").json()["total"] == 0


def test_our_own_pages_and_programs_that_say_so_change_things(client: Client) -> None:
    own = {"Origin": str(client.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/reviews", json=ANSWER, headers=own).status_code == 201
    assert client.post("/api/reviews", json=ANSWER).status_code == 201


def test_a_form_of_another_site_changes_nothing(client: Client) -> None:
    del client.headers["X-Consilience"]
    for path in ("/api/reviews", "/api/reviews/undo", "/api/refit"):
        assert (
            client.post(path, content="number=0", headers={"Content-Type": "text/plain"}).status_code == 403
        )
    assert client.delete("/api/refit").status_code == 403


def test_every_answer_forbids_what_no_page_needs(reader: Client) -> None:
    for path in ("/", "/api/result", "/static/look.css", "/nowhere", "/api/nowhere", "/object?number=-1"):
        headers = reader.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_what_is_too_large_is_refused(reader: Client) -> None:
    assert reader.get("/objects?text=" + "x" * 20_000).status_code == 414
    assert reader.get("/objects?text=" + "x" * 2_000).status_code == 422
    assert reader.get("/api/objects?size=201").status_code == 422
    assert reader.post("/api/reviews", content=b"x" * (MOST_BODY + 1)).status_code == 413

    pieces = (b"x" * 100_000 for _ in range(12))  # without a length
    assert reader.post("/api/reviews", content=pieces).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2fetc%2fpasswd",
        "/static/",
    ],
)
def test_no_file_but_ours_is_served(reader: Client, path: str) -> None:
    assert reader.get(path).status_code == 404


def test_a_token_opens_the_door_by_header_or_by_a_cookie_that_an_address_sets(
    visiting: Open, result: Path
) -> None:
    client = visiting(result, host="0.0.0.0", token=TOKEN)
    client.headers["Host"] = "box.example"
    for path in ("/", "/api/result", "/static/look.css", "/?token=wrong"):
        assert client.get(path).status_code == 401
    assert client.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/api/result", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.post(f"/api/reviews?token={TOKEN}", json=ANSWER).status_code == 401

    entered = client.get(f"/objects?text=a&token={TOKEN}", follow_redirects=False)
    assert entered.status_code == 303
    assert entered.headers["location"] == "/objects?text=a"
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert client.get("/objects").status_code == 200
    assert client.post("/api/reviews", json=ANSWER).status_code == 201


def test_the_redirect_never_leads_to_another_host(visiting: Open, result: Path) -> None:
    client = visiting(result, host="0.0.0.0", token=TOKEN)
    for path in ("//evil.example/", "/\\evil.example", "/☃"):
        entered = client.get(
            f"{str(client.base_url).rstrip(chr(47))}{path}?token={TOKEN}", follow_redirects=False
        )
        location = entered.headers["location"]
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\"))


def test_addresses() -> None:
    assert is_local("127.0.0.1")
    assert is_local("::1")
    assert is_local("localhost")
    assert not any(map(is_local, ("0.0.0.0", "::", "192.168.0.7", "example.org", "")))
    assert allowed_hosts("0.0.0.0") is None
    assert allowed_hosts("192.168.0.7") == {"192.168.0.7"}
