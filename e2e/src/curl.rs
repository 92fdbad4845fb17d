//! `curl`, for what it can and we need not write: HTTP/2, TLS, and being somebody else's client.

use std::{
    ffi::OsStr,
    io::Write,
    net::SocketAddr,
    process::{Command, Stdio},
};

use crate::http::Answer;

/// What curl says when there was no answer at all.
pub type NoAnswer = String;

/// Runs `curl` with a body on its standard input (name it with `--data-binary @-`).
pub fn curl<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, body: &[u8]) -> Result<Answer, NoAnswer> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--include", "--max-time", "60", "--noproxy", "*"]).args(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("curl");
    // It may have its answer before it has read everything.
    let _ = child.stdin.take().expect("it is piped").write_all(body);
    let output = child.wait_with_output().unwrap();
    let answer = parse(&output.stdout);
    answer.ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The last head in what curl prints, its body, and the trailers, which curl prints as headers behind it.
fn parse(printed: &[u8]) -> Option<Answer> {
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
        return Some(Answer { status, headers: headers.collect(), body: rest.to_vec() });
    }
}

/// The method that takes traces.
pub const TRACES: &str = "opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// A gRPC call, framed by hand. A call that is refused before its body was read is not for curl, which takes the reset of
/// the rest for an error and forgets the answer: see [`crate::python::call_traces`].
pub struct Grpc {
    url: String,
    args: Vec<String>,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub struct GrpcAnswer {
    /// `grpc-status`
    pub code: u32,
    /// `grpc-message`
    pub message: String,
    /// `grpc-status-details-bin`
    pub details: String,
}

impl Grpc {
    /// To the service that takes traces.
    pub fn traces(address: SocketAddr) -> Self {
        Self::call(format!("http://{address}"), TRACES)
    }

    /// To any method.
    pub fn call(base: impl AsRef<str>, method: &str) -> Self {
        Self { url: format!("{}/{method}", base.as_ref()), args: Vec::new() }
    }

    /// Adds a header.
    pub fn header(self, header: &str) -> Self {
        self.arg("--header").arg(header)
    }

    /// Adds an argument of curl.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sends one message.
    pub fn send(self, message: &[u8]) -> GrpcAnswer {
        self.send_body(&frame(0, message))
    }

    /// Sends one message that is compressed already.
    pub fn send_gzip(self, compressed: &[u8]) -> GrpcAnswer {
        self.header("grpc-encoding: gzip").send_body(&frame(1, compressed))
    }

    /// Sends any bytes as the body of the call.
    pub fn send_body(self, body: &[u8]) -> GrpcAnswer {
        let answer = self.try_send_body(body).unwrap_or_else(|error| panic!("no answer: {error}"));
        assert_eq!(answer.status, 200, "gRPC has its status elsewhere: {answer:?}");
        let all = String::from_utf8_lossy(&answer.body).into_owned();
        let trailer = |name: &str| {
            let behind = || Some(all.split_once(&format!("{name}: "))?.1.lines().next()?.trim().to_owned());
            Some(answer.header(name).to_owned()).filter(|value| !value.is_empty()).or_else(behind)
        };
        GrpcAnswer {
            code: trailer("grpc-status").and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{answer:?}")),
            message: trailer("grpc-message").unwrap_or_default(),
            details: trailer("grpc-status-details-bin").unwrap_or_default(),
        }
    }

    /// Sends any bytes, and takes no answer for an answer.
    pub fn try_send_body(self, body: &[u8]) -> Result<Answer, NoAnswer> {
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

/// A message as gRPC frames it.
pub fn frame(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[flag], &length[..], message].concat()
}
