//! The way of an API server's spans to their collector, by an exporter that takes its time to connect again.
//!
//! kube-apiserver's backs off for up to two minutes once nobody has listened. Here attempts are counted and not
//! seconds: so many come to nothing after one that found nobody, so that what is exported right after a
//! collector has started is lost.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
};

/// So many attempts are in vain after one that found nobody. The embedded API server makes them within seconds.
const VAIN_ATTEMPTS: u32 = 4;

/// Forwards connections until it is dropped.
pub(super) struct ReconnectingExporter {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    in_vain: Arc<AtomicU32>,
}

impl ReconnectingExporter {
    /// To this address, at which there need not be anybody yet.
    pub(super) fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let in_vain = Arc::new(AtomicU32::new(0));
        let over = Arc::clone(&is_over);
        let vain = Arc::clone(&in_vain);
        thread::spawn(move || {
            let mut left = 0_u32;
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                if left > 0 {
                    left -= 1;
                    vain.fetch_add(1, Ordering::SeqCst);
                    continue;
                }
                match TcpStream::connect(to) {
                    Ok(collector) => forward(stream, collector),
                    Err(_) => left = VAIN_ATTEMPTS,
                }
            }
        });
        Self { address, is_over, in_vain }
    }

    /// What the API server takes for its collector.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many attempts came to nothing although somebody may have listened.
    pub(super) fn in_vain(&self) -> u32 {
        self.in_vain.load(Ordering::SeqCst)
    }
}

impl Drop for ReconnectingExporter {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // It waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// Copies both ways until either side ends.
fn forward(one: TcpStream, other: TcpStream) {
    for (from, to) in [(one.try_clone(), other.try_clone()), (Ok(other), Ok(one))] {
        let (Ok(mut from), Ok(mut to)) = (from, to) else { return };
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            for stream in [from, to] {
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
    }
}
