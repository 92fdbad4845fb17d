//! An HTTP backend with scripted responses.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// `POST`
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// The first header of this name, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether the body contains these bytes.
    pub fn contains(&self, needle: &str) -> bool {
        self.body.windows(needle.len()).any(|window| window == needle.as_bytes())
    }
}

/// A response: status, additional headers, and body.
pub type HttpReply = (u16, Vec<(&'static str, String)>, Vec<u8>);

/// The answer that is none: the connection is closed.
pub const CLOSE_WITHOUT_ANSWER: HttpReply = (0, Vec::new(), Vec::new());

type RequestHandler = dyn Fn(&ReceivedRequest) -> HttpReply + Send + Sync;

/// An HTTP server on a free port. Its threads end with the test program.
pub struct HttpBackend {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl HttpBackend {
    /// Starts a backend that responds to each request as `handler` says.
    pub fn start(handler: impl Fn(&ReceivedRequest) -> HttpReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let seen = requests.clone();
        let handler = Arc::<RequestHandler>::from(Box::new(handler) as Box<RequestHandler>);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = seen.clone();
                let handler = handler.clone();
                thread::spawn(move || serve(stream, &seen, &*handler));
            }
        });
        Self { address, requests }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

/// A response that accepts the whole export.
pub fn accepted_reply() -> HttpReply {
    (200, vec![("content-type", "application/x-protobuf".to_owned())], Vec::new())
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<ReceivedRequest>>, handler: &RequestHandler) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let request = read(&mut stream)?;
        seen.lock().unwrap().push(request.clone());
        let (status, headers, body) = handler(&request);
        if status == CLOSE_WITHOUT_ANSWER.0 {
            return None;
        }
        let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.get_mut().write_all(&[head.as_bytes(), b"\r\n", &body].concat()).ok()?;
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|n| *n > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let method = words.next()?;
    let path = words.next()?;
    let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let mut request = ReceivedRequest { method, path, headers, body: Vec::new() };
    request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}
