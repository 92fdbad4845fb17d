//! An API server with a pod that has much metadata.

use std::{
    convert::Infallible,
    net::{IpAddr, Ipv4Addr},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{Request, Response, body::Incoming, server, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// The address of the pod.
pub const POD_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7));

/// The number of labels and annotations of each object, and the size of each.
const LABELS: usize = 8;
const LABEL_BYTES: usize = 60;

/// The approximate size of the metadata of the pod, its namespace and its node.
pub const KNOWN_BYTES: usize = 4 * LABELS * LABEL_BYTES;

fn labels(of: &str) -> Value {
    let label = |number: usize| (format!("{of}-{number}"), Value::from("x".repeat(LABEL_BYTES)));
    Value::Object((0..LABELS).map(label).collect::<Map<_, _>>())
}

/// The objects at a path.
fn objects(path: &str) -> Vec<Value> {
    let named = |name: &str| {
        let (labels, annotations) = (labels(&format!("{name}-label")), labels(&format!("{name}-annotation")));
        json!({"metadata": {"name": name, "uid": format!("{name}-uid"), "labels": labels, "annotations": annotations}})
    };
    match path {
        "/api/v1/namespaces" => vec![named("web"), named("kube-system")],
        "/api/v1/nodes" => vec![named("node-1")],
        "/api/v1/pods" => vec![json!({
            "metadata": {
                "name": "shop-6c45f8d6f6-x2x2x", "namespace": "web", "uid": "pod-uid",
                "labels": labels("label"), "annotations": labels("annotation"),
                "ownerReferences": [{"kind": "ReplicaSet", "name": "shop-6c45f8d6f6", "uid": "rs-uid", "controller": true}],
            },
            "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "r.io/team/shop:1.2"}]},
            "status": {
                "podIP": POD_ADDRESS.to_string(), "podIPs": [{"ip": POD_ADDRESS.to_string()}],
                "containerStatuses": [{"name": "main", "containerID": "containerd://aaa", "restartCount": 2}],
            },
        })],
        _ => Vec::new(),
    }
}

/// Serves lists, and watches without events, until the runtime ends. Returns a kubeconfig.
pub async fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection =
                server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(connection);
        }
    });
    format!(
        "{{apiVersion: v1, kind: Config, current-context: it, clusters: [{{name: it, cluster: {{server: 'http://{address}'}}}}], \
         users: [{{name: it, user: {{}}}}], contexts: [{{name: it, context: {{cluster: it, user: it}}}}]}}"
    )
}

async fn answer(request: Request<Incoming>) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let body = if is_watch {
        let silence = futures_util::stream::pending::<Result<hyper::body::Frame<Bytes>, Infallible>>();
        BodyExt::boxed(http_body_util::StreamBody::new(silence))
    } else {
        let list = json!({"metadata": {"resourceVersion": "1"}, "items": objects(request.uri().path())});
        Full::new(Bytes::from(list.to_string())).boxed()
    };
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    Ok(response)
}
