"""The built page that people look at: files of a folder, served as they are."""
