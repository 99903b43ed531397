import pytest

from tests.browser.chromium import open_browser


@pytest.fixture(scope="session")
def chromium():
    """One headless Chromium for all browser tests."""
    with open_browser() as browser:
        yield browser
