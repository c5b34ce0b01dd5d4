"""Live audits over HTTP and in the browser: an application for uvicorn, tokens and roles."""

from equipoise.service.app import create_app
from equipoise.service.settings import ServiceSettings, load_settings
from equipoise.service.tokens import Role, Token, TokenStore

__all__ = ["Role", "ServiceSettings", "Token", "TokenStore", "create_app", "load_settings"]
