"""The namespaces in which a launcher works: opened, watched, prepared for tasks, and closed again."""
