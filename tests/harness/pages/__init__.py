"""The documentation as its readers use it: fenced blocks of pages, saved and typed in their order."""
