"""Creation of the objects of orders, in namespaces that are open and with listeners of the task gateway."""
