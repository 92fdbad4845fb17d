//! HTTP/1.1 over a plain socket: one connection that a test holds in its hands.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// Only a broken system needs this long for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// In lower case, in their order.
    pub headers: Vec<(String, String)>,
    /// The whole of it.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of this name, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }
}

/// A connection that stays open.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects.
    pub fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Sends a request and reads its answer.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        self.send(format!("{head}\r\n").as_bytes());
        self.send(body);
        self.answer(method == "HEAD")
    }

    /// Posts a body of this type.
    pub fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        self.request("POST", path, &[("content-type", content_type)], body)
    }

    /// Sends bytes as they are. One that the other side stopped reading is not an error: it may have answered.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Ends our side.
    pub fn finish(&mut self) {
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Write);
    }

    /// Reads an answer.
    pub fn answer(&mut self, bodiless: bool) -> Answer {
        let status = self.line();
        let status = status.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {status:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if answer.header("transfer-encoding").contains("chunked") {
            answer.body = self.chunks();
        } else if !bodiless {
            answer.body = vec![0; answer.header("content-length").parse().unwrap_or(0)];
            self.stream.read_exact(&mut answer.body).expect("the whole body comes");
        }
        answer
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(self.line().trim(), 16).expect("the size of a chunk");
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).expect("the whole chunk comes");
            if size == 0 {
                return body;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).expect("an answer comes");
        String::from_utf8_lossy(&line).trim_end().to_owned()
    }
}

/// Gets a page.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    Connection::to(address).request("GET", path, &[], b"")
}

/// Posts a body over a connection of its own.
pub fn post(address: SocketAddr, path: &str, content_type: &str, body: &[u8]) -> Answer {
    Connection::to(address).post(path, content_type, body)
}
