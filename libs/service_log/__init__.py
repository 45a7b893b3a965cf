"""The log of all services in one place: each ships the lines it logs to the bus, and the api shows them."""

from libs.service_log.buffer import LINES, LineBuffer
from libs.service_log.shipping import ship_lines

__all__ = ["LINES", "LineBuffer", "ship_lines"]
