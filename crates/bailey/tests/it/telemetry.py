"""A receiver of OTLP/HTTP that takes nothing which the official messages do not have. It prints a line for each request.

It takes JSON, which Bailey sends, and protobuf, which a collector sends on."""

import base64
import gzip
import http.server
import json
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def bytes_of_ids(value):
    """OTLP writes the names of traces and spans in hexadecimal, where the JSON of protobuf has base64."""
    if isinstance(value, list):
        return [bytes_of_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for key, one in value.items():
        if key in IDS:
            raw = bytes.fromhex(one)
            assert len(raw) == IDS[key] and any(raw), f"{key}: {one}"
            result[key] = base64.b64encode(raw).decode()
        else:
            result[key] = bytes_of_ids(one)
    return result


def any_value(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [any_value(one) for one in value.array_value.values]
    return getattr(value, kind)


def attributes(pairs):
    keys = [pair.key for pair in pairs]
    assert len(keys) == len(set(keys)), f"twice: {keys}"
    return {pair.key: any_value(pair.value) for pair in pairs}


def traces(request):
    for resource in request.resource_spans:
        about = attributes(resource.resource.attributes)
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert span.start_time_unix_nano <= span.end_time_unix_nano
                yield {
                    "resource": about,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": span.kind,
                    "ms": (span.end_time_unix_nano - span.start_time_unix_nano) // 1_000_000,
                    "status": span.status.code,
                    "attributes": attributes(span.attributes),
                }


def metrics(request):
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                for point in data.data_points:
                    assert point.start_time_unix_nano <= point.time_unix_nano
                    yield {
                        "name": metric.name,
                        "unit": metric.unit,
                        "kind": kind,
                        "temporality": getattr(data, "aggregation_temporality", None),
                        "attributes": attributes(point.attributes),
                        "point": json_format.MessageToDict(point),
                    }


# What is posted where, and how it is told.
SIGNALS = {
    "/v1/traces": (ExportTraceServiceRequest, traces),
    "/v1/metrics": (ExportMetricsServiceRequest, metrics),
}


def of_json(message, text):
    request = json_format.Parse(json.dumps(bytes_of_ids(json.loads(text))), message())
    assert message.FromString(request.SerializeToString()) == request
    return request


TURN = threading.Lock()


def say(value):
    # Requests come at once, and lines do not.
    with TURN:
        print(json.dumps(value), flush=True)


class Collector(http.server.BaseHTTPRequestHandler):
    """What it answers to spans is said beforehand, one for each request, and to figures the same each time; else it takes them."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        told = {"path": self.path, "headers": dict(self.headers)}
        try:
            message, items = SIGNALS[self.path.removeprefix("/base")]
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if self.headers["content-type"] == "application/x-protobuf":
                request = message.FromString(body)
            else:
                assert self.headers["content-type"] == "application/json", self.headers["content-type"]
                told["text"] = body.decode()
                request = of_json(message, told["text"])
            told["items"] = list(items(request))
        except Exception as error:
            told["wrong"] = f"{type(error).__name__}: {error}"
        say(told)
        if self.path.endswith("traces"):
            self.answer(answers.pop(0) if answers else {})
        else:
            self.answer(of_figures)

    def answer(self, how):
        if how.get("sleep"):
            time.sleep(how["sleep"])
        body = how.get("body", "{}").encode() * how.get("times", 1)
        self.send_response(how.get("status", 200))
        for name, value in how.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body) + how.get("lacks", 0)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass
        self.close_connection = bool(how)

    def do_GET(self):
        say({"path": self.path, "wrong": "nobody asks for this"})
        self.answer({"status": 404})

    def log_message(self, *_):
        pass


if sys.argv[2] == "decode":
    for line in sys.stdin:
        for item in traces(of_json(ExportTraceServiceRequest, line)):
            say(item)
else:
    answers, of_figures = json.loads(sys.argv[3]), json.loads(sys.argv[4])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    say({"port": server.server_address[1]})
    server.serve_forever()
