//! `curl` as a client that is not our own, for HTTP/2 and TLS.

use std::{
    ffi::OsStr,
    io::Write,
    net::SocketAddr,
    process::{Command, Stdio},
};

use crate::http::HttpResponse;

/// The error output of curl when there was no response.
pub type CurlError = String;

/// Runs `curl` with a body on its standard input (name it with `--data-binary @-`).
pub fn curl<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, body: &[u8]) -> Result<HttpResponse, CurlError> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--include", "--max-time", "60", "--noproxy", "*"]).args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("curl");
    // The server may respond before it has read the whole body.
    let _ = child.stdin.take().expect("the stream is piped").write_all(body);
    let output = child.wait_with_output().unwrap();
    let answer = parse(&output.stdout);
    answer.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The last head in curl's output, its body, and the trailers, which curl prints as headers after the body.
fn parse(printed: &[u8]) -> Option<HttpResponse> {
    let mut rest = printed;
    loop {
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 4..];
        let status: u16 = head.split(' ').nth(1)?.parse().ok()?;
        if status == 100 {
            continue;
        }
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        return Some(HttpResponse { status, headers: headers.collect(), body: rest.to_vec() });
    }
}

/// The gRPC method that receives traces.
pub const TRACE_EXPORT_METHOD: &str = "opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// A gRPC call, framed by hand. Not for a call that is rejected before its body was read: curl treats the
/// stream reset as an error and drops the response; see [`crate::python::call_traces`].
pub struct GrpcCall {
    url: String,
    args: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct GrpcResponse {
    /// `grpc-status`
    pub code: u32,
    /// `grpc-message`
    pub message: String,
    /// `grpc-status-details-bin`
    pub details: String,
}

impl GrpcCall {
    /// A call of the trace service.
    pub fn traces(address: SocketAddr) -> Self {
        Self::call(format!("http://{address}"), TRACE_EXPORT_METHOD)
    }

    pub fn call(base: impl AsRef<str>, method: &str) -> Self {
        Self { url: format!("{}/{method}", base.as_ref()), args: Vec::new() }
    }

    pub fn header(self, header: &str) -> Self {
        self.arg("--header").arg(header)
    }

    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub fn send(self, message: &[u8]) -> GrpcResponse {
        self.send_body(&frame(0, message))
    }

    /// Sends one message that is already compressed.
    pub fn send_gzip(self, compressed: &[u8]) -> GrpcResponse {
        self.header("grpc-encoding: gzip").send_body(&frame(1, compressed))
    }

    /// Sends any bytes as the body of the call.
    pub fn send_body(self, body: &[u8]) -> GrpcResponse {
        let answer = self.try_send_body(body).unwrap_or_else(|error| panic!("no answer: {error}"));
        assert_eq!(answer.status, 200, "gRPC has its status elsewhere: {answer:?}");
        let all = String::from_utf8_lossy(&answer.body).into_owned();
        let trailer = |name: &str| {
            let behind = || Some(all.split_once(&format!("{name}: "))?.1.lines().next()?.trim().to_owned());
            Some(answer.header(name).to_owned()).filter(|value| !value.is_empty()).or_else(behind)
        };
        GrpcResponse {
            code: trailer("grpc-status").and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer:?}")),
            message: trailer("grpc-message").unwrap_or_default(),
            details: trailer("grpc-status-details-bin").unwrap_or_default(),
        }
    }

    /// Sends any bytes; there may be no response.
    pub fn try_send_body(self, body: &[u8]) -> Result<HttpResponse, CurlError> {
        let head = ["--http2-prior-knowledge", "-H", "content-type: application/grpc", "-H", "te: trailers", "-H"];
        let tail = ["expect:", "--data-binary", "@-"];
        let mut args: Vec<String> = head.into_iter().chain(tail).map(str::to_owned).collect();
        if self.url.starts_with("https") {
            args[0] = "--http2".to_owned();
        }
        args.extend(self.args);
        args.push(self.url);
        curl(args, body)
    }
}

/// A message in the framing of gRPC.
pub fn frame(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag], &length[..], message].concat()
}
