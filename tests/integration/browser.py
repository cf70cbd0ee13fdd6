"""A headless Chromium."""

import os
import signal
import subprocess
import tempfile

from harness import require


def open_page(test, url):
    """Opens the page in a browser, until the test ends. The page has to say somewhere what it has found."""
    require("chromium")
    folder = test.enterContext(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    words = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--no-proxy-server", "--disable-background-networking", "--disable-component-update",
             "--ignore-certificate-errors", f"--user-data-dir={folder}", "--remote-debugging-port=0", url)
    # A session of its own, because it has many processes.
    browser = subprocess.Popen(
        ("chromium", *words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    test.addCleanup(browser.wait)
    test.addCleanup(os.killpg, browser.pid, signal.SIGKILL)
