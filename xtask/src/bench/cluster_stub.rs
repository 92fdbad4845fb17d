//! A stub API server for collectors: a list of pods, and a watch without events.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use serde_json::{Value, json};

/// A server for the lifetime of the bench.
pub(crate) struct ClusterStub {
    address: SocketAddr,
}

impl ClusterStub {
    /// Serves this number of pods; the first one has the address of local senders.
    pub(crate) fn start(pods: usize) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let items: Vec<Value> = (0..pods).map(pod).collect();
        let list = json!({ "kind": "PodList", "metadata": { "resourceVersion": "1" }, "items": items }).to_string();
        let list = Arc::new(list);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let list = Arc::clone(&list);
                // A client may disconnect at any time.
                thread::spawn(move || drop(serve(stream, &list)));
            }
        });
        Ok(Self { address })
    }

    pub(crate) fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: stub\nclusters: [{{name: stub, cluster: {{server: 'http://{}'}}}}]\n\
             contexts: [{{name: stub, context: {{cluster: stub}}}}]\n",
            self.address
        )
    }
}

fn pod(number: usize) -> Value {
    let ip = match number {
        0 => "127.0.0.1".to_owned(),
        n => format!("10.{}.{}.{}", n / 65_536, n / 256 % 256, n % 256),
    };
    json!({
        "metadata": {
            "name": format!("shop-6c45f8d6f6-{number:05}"), "namespace": "web", "uid": format!("{number:036}"),
            "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "pod-template-hash": "6c45f8d6f6", "team": "blue" },
            "ownerReferences": [{ "kind": "ReplicaSet", "name": "shop-6c45f8d6f6", "uid": "rs", "controller": true }],
        },
        "spec": { "nodeName": "node-1", "containers": [{ "name": "main", "image": "example/shop:1.0" }] },
        "status": { "podIP": ip, "startTime": "2026-01-01T00:00:01Z" },
    })
}

/// Answers lists, and keeps watches open.
fn serve(mut stream: TcpStream, list: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(request) = lines.next().transpose()? {
        while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
        if request.contains("watch=true") {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
            )?;
        } else {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
            write!(stream, "{head}: {}\r\n\r\n{list}", list.len())?;
        }
    }
    Ok(())
}
