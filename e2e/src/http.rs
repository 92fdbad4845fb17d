//! HTTP/1.1 over a plain socket, on a connection that the test controls.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Only a broken system needs this long to respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case, in order of arrival.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The first header of this name, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

pub struct Http1Connection {
    stream: BufReader<TcpStream>,
}

impl Http1Connection {
    pub fn connect(address: SocketAddr) -> Self {
        let stream =
            TcpStream::connect(address).unwrap_or_else(|error| panic!("failed to connect to {address}: {error}"));
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends a request and reads its response.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpResponse {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        self.send(format!("{head}\r\n").as_bytes());
        self.send(body);
        self.read_response(method == "HEAD")
    }

    /// Posts a body of this type.
    pub fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> HttpResponse {
        self.request("POST", path, &[("content-type", content_type)], body)
    }

    /// Sends raw bytes. A server that stopped reading is not an error: it may have responded.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    pub fn shutdown_write(&mut self) {
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Write);
    }

    pub fn read_response(&mut self, bodiless: bool) -> HttpResponse {
        let status = self.read_line();
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {status:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.read_line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = HttpResponse { status, headers, body: Vec::new() };
        if answer.header("transfer-encoding").contains("chunked") {
            answer.body = self.read_chunked_body();
        } else if !bodiless {
            answer.body = vec![0; answer.header("content-length").parse().unwrap_or(0)];
            self.stream.read_exact(&mut answer.body).expect("the whole body comes");
        }
        answer
    }

    fn read_chunked_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(self.read_line().trim(), 16).expect("the size of a chunk");
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).expect("the whole chunk comes");
            if size == 0 {
                return body;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    fn read_line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).expect("an answer comes");
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }
}

pub fn get(address: SocketAddr, path: &str) -> HttpResponse {
    Http1Connection::connect(address).request("GET", path, &[], b"")
}

/// Posts a body on a new connection.
pub fn post(address: SocketAddr, path: &str, content_type: &str, body: &[u8]) -> HttpResponse {
    Http1Connection::connect(address).post(path, content_type, body)
}
