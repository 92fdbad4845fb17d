//! The OpenTelemetry SDK for Python, and gRPC's own client.

use std::{
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::curl::{GrpcResponse, TRACE_EXPORT_METHOD};

/// An interpreter with the packages of `e2e/requirements.txt`: `$KUBEWAKE_PYTHON`.
pub fn python() -> PathBuf {
    interpreter("KUBEWAKE_PYTHON", "e2e/requirements.txt")
}

fn interpreter(variable: &str, requirements: &str) -> PathBuf {
    let python = std::env::var_os(variable);
    python.map(PathBuf::from).unwrap_or_else(|| {
        panic!("{variable} is not set: run `cargo xtask test`, or set the variable to a Python with {requirements}")
    })
}

/// A Python program for a pod that sends spans continuously, from the address of the pod (`POD_IP`) to
/// `COLLECTOR`. `claims` is a Python dictionary with the attributes of its resource. The program is one line,
/// as a list of arguments in YAML needs it.
pub fn span_sender(claims: &str) -> String {
    SPAN_SENDER.trim().replace("CLAIMS", claims).replace('\n', "\\n")
}

const SPAN_SENDER: &str = r#"
import http.client, json, os, time
attributes = [{'key': key, 'value': {'stringValue': value}} for key, value in CLAIMS.items()]
span = {'traceId': '5b8efff798038103d269b633813fc60c', 'spanId': 'eee19b7ec3c1b174', 'name': 'buy'}
body = json.dumps({'resourceSpans': [{'resource': {'attributes': attributes}, 'scopeSpans': [{'spans': [span]}]}]})
while True:
    try:
        to = http.client.HTTPConnection(os.environ['COLLECTOR'], 4318, source_address=(os.environ['POD_IP'], 0))
        to.request('POST', '/v1/traces', body, {'content-type': 'application/json'})
        to.getresponse().read()
    except OSError:
        pass
    time.sleep(0.2)
"#;

/// Runs a script in `e2e/python`, which prints JSON.
pub fn run(script: &str, args: &[&str]) -> Value {
    run_with(&python(), script, args, b"")
}

/// The same with the interpreter that has OpenCensus: `$KUBEWAKE_OPENCENSUS_PYTHON`.
pub fn run_opencensus(script: &str, args: &[&str]) -> Value {
    let python = interpreter("KUBEWAKE_OPENCENSUS_PYTHON", "e2e/requirements-opencensus.txt");
    run_with(&python, script, args, b"")
}

/// Calls the trace service with a message, once for each header (`name=value`), or once without any.
pub fn call_traces(address: SocketAddr, headers: &[&str], message: &[u8]) -> Vec<GrpcResponse> {
    call(address, TRACE_EXPORT_METHOD, headers, message)
}

/// The same with any method.
pub fn call(address: SocketAddr, method: &str, headers: &[&str], message: &[u8]) -> Vec<GrpcResponse> {
    let address = address.to_string();
    let method = format!("/{method}");
    let args: Vec<&str> = [&*address, &*method].into_iter().chain(headers.iter().copied()).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let outcome = |call: &Value| GrpcResponse {
        code: call["code"].as_u64().unwrap() as u32,
        message: text(&call["message"]),
        details: text(&call["details"]),
    };
    run_with(&python(), "call.py", &args, message).as_array().unwrap().iter().map(outcome).collect()
}

fn run_with(python: &Path, script: &str, args: &[&str], input: &[u8]) -> Value {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("python").join(script);
    let mut command = Command::new(python);
    // The environment of the machine must not configure the SDK.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command.env("NO_PROXY", "*").env("no_proxy", "*").env("PYTHONDONTWRITEBYTECODE", "1");
    // An interpreter that dies of a signal prints its stack.
    command.env("PYTHONFAULTHANDLER", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.arg(&script).args(args).spawn().expect("Python starts");
    // A script may exit without reading its input.
    let _ = child.stdin.take().expect("the stream is piped").write_all(input);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} exited with {}:\n{stderr}", script.display(), output.status);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{stderr}"))
}
