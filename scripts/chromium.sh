#!/bin/sh
# Chromium for the browser tests, from the system's packages, where it is missing and may be installed.
# It never fails: without Chromium those tests are skipped, or fail where CI=true.
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then exit 0; fi
done
if ! command -v apt-get >/dev/null; then
    echo "No Chromium is installed. Install it with your system's packages to run the browser tests."
    exit 0
fi
as_root=""
if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "No Chromium is installed. Install it to run the browser tests: sudo apt-get install chromium"
        exit 0
    fi
    as_root="sudo -n"
fi
echo "Installing Chromium for the browser tests: a minute, the first time only."
export DEBIAN_FRONTEND=noninteractive
{ $as_root apt-get update -qq && $as_root apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 \
    || echo "Chromium could not be installed (is there a network?): the browser tests will not run."
exit 0
