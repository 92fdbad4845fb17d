//! HTTP/2 over a plain socket: calls that a test can leave incomplete.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
};

const DATA_FRAME: u8 = 0;
const HEADERS_FRAME: u8 = 1;
const SETTINGS_FRAME: u8 = 4;
const END_STREAM_FLAG: u8 = 1;
const END_HEADERS_FLAG: u8 = 4;

/// A connection with prior knowledge of HTTP/2. Responses are read and discarded.
pub struct Http2Connection {
    stream: TcpStream,
    next_stream: u32,
    frames: Vec<u8>,
}

impl Http2Connection {
    pub fn connect(address: SocketAddr) -> Self {
        let stream =
            TcpStream::connect(address).unwrap_or_else(|error| panic!("failed to connect to {address}: {error}"));
        let mut answers = stream.try_clone().unwrap();
        thread::spawn(move || while answers.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
        let mut connection = Self { stream, next_stream: 1, frames: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec() };
        connection.frame(SETTINGS_FRAME, 0, 0, &[]);
        connection
    }

    /// Begins a gRPC call without metadata, and returns its stream id.
    pub fn begin_call(&mut self, path: &str) -> u32 {
        // Of HPACK's static table: `:method: POST`, `:scheme: http`, and the names `:path`, `:authority`,
        // `content-type`.
        let mut block = vec![0x83, 0x86];
        for (name, value) in [(&[0x04][..], path), (&[0x01], "localhost"), (&[0x0f, 0x10], "application/grpc")] {
            block.extend(name);
            block.push(u8::try_from(value.len()).expect("short values only"));
            block.extend(value.as_bytes());
        }
        let stream = self.next_stream;
        self.next_stream += 2;
        self.frame(HEADERS_FRAME, END_HEADERS_FLAG, stream, &block);
        stream
    }

    /// Sends a part of a call's body.
    pub fn send_data(&mut self, stream: u32, bytes: &[u8]) {
        self.frame(DATA_FRAME, 0, stream, bytes);
    }

    /// Sends the last part of a call's body.
    pub fn send_last_data(&mut self, stream: u32, bytes: &[u8]) {
        self.frame(DATA_FRAME, END_STREAM_FLAG, stream, bytes);
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        self.frames.extend(&length[1..]);
        self.frames.extend([kind, flags]);
        self.frames.extend(stream.to_be_bytes());
        self.frames.extend(payload);
    }

    /// Flushes the buffer. A connection that the server closed is no error: it may defend itself.
    pub fn flush(&mut self) {
        let _ = self.stream.write_all(&std::mem::take(&mut self.frames));
    }
}

/// The prefix of a gRPC message of this length, whether or not the message follows.
pub fn grpc_prefix(length: usize) -> [u8; 5] {
    let [a, b, c, d] = u32::try_from(length).unwrap().to_be_bytes();
    [0, a, b, c, d]
}

impl Drop for Http2Connection {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
