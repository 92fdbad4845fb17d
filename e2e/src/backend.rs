//! A backend that answers over HTTP as a test says.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// What it got.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST`
    pub method: String,
    /// With its query.
    pub path: String,
    /// In lower case.
    pub headers: Vec<(String, String)>,
    /// As it came.
    pub body: Vec<u8>,
}

impl Request {
    /// The first header of this name, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Whether its body has these bytes somewhere.
    pub fn contains(&self, needle: &str) -> bool {
        self.body.windows(needle.len()).any(|window| window == needle.as_bytes())
    }
}

/// What it answers: a status, more headers, a body.
pub type Reply = (u16, Vec<(&'static str, String)>, Vec<u8>);

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server on a port of its own. Its threads end with the test program.
pub struct Backend {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Backend {
    /// One that answers each request as `handler` says.
    pub fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let (seen, handler) = (requests.clone(), Arc::<Handler>::from(Box::new(handler) as Box<Handler>));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, handler) = (seen.clone(), handler.clone());
                thread::spawn(move || serve(stream, &seen, &*handler));
            }
        });
        Self { address, requests }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Everything that came so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// The whole export was taken.
pub fn taken() -> Reply {
    (200, vec![("content-type", "application/x-protobuf".to_owned())], Vec::new())
}

fn serve(stream: TcpStream, seen: &Mutex<Vec<Request>>, handler: &Handler) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let request = read(&mut stream)?;
        seen.lock().unwrap().push(request.clone());
        let (status, headers, body) = handler(&request);
        let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.get_mut().write_all(&[head.as_bytes(), b"\r\n", &body].concat()).ok()?;
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
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
    let (method, path) = (words.next()?, words.next()?);
    let headers = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let mut request = Request { method, path, headers, body: Vec::new() };
    request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}
