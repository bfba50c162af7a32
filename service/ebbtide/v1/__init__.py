"""The schema `ebbtide.v1` as Python modules: generated from `proto/` by `make proto`, never edited.

`from ebbtide.v1 import recall_pb2, memory_service_pb2_grpc` is how a Python client gets its messages and stub.
"""
