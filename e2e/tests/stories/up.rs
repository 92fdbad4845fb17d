//! Somebody tries Kubewake for the first time.

use std::fs;

use kubewake_e2e::{
    eventually, free_address, http,
    otlp::spans,
    process::{Process, kubewake},
};

/// The document that `up` writes, on ports that are free.
fn document(folder: &std::path::Path) -> [std::net::SocketAddr; 4] {
    let addresses = [free_address(), free_address(), free_address(), free_address()];
    let [grpc, http, metrics, health] = addresses;
    let original = include_str!("../../../crates/kubewake/src/up/collector.yaml");
    let changed = original
        .replace("127.0.0.1:4317", &grpc.to_string())
        .replace("127.0.0.1:4318", &http.to_string())
        .replace("port: 8888", &format!("port: {}", metrics.port()))
        .replace("127.0.0.1:13133", &health.to_string());
    fs::write(folder.join("collector.yaml"), changed).unwrap();
    addresses
}

#[test]
fn up_says_where_to_send_and_shows_what_it_gets() {
    let folder = tempfile::tempdir().unwrap();
    let [grpc, http, metrics, health] = document(folder.path());
    let mut up = Process::start(kubewake().args(["up", "--data-dir"]).arg(folder.path()));
    up.ready();
    let said = up.stdout();
    for address in [grpc, http, metrics, health] {
        assert!(said.contains(&format!("http://{address}")), "{address} is not in\n{said}");
    }
    assert_eq!(http::post(http, "/v1/traces", "application/x-protobuf", &spans(&["first try"])).status, 200);
    eventually("it shows the span", || up.stdout().contains("first try") || up.stderr().contains("first try"));
    assert_eq!(http::get(health, "/status").status, 200);
    assert_eq!(http::get(metrics, "/metrics").status, 200);
    up.signal("TERM");
    assert!(up.wait().success());
}

#[test]
fn up_writes_a_document_that_is_good() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("new/data");
    let mut up = Process::start(kubewake().args(["up", "--data-dir"]).arg(&data));
    // Whether its usual ports are free is not for this test to say.
    eventually("the document is there", || fs::metadata(data.join("collector.yaml")).is_ok_and(|file| file.len() > 0));
    up.signal("TERM");
    up.wait();
    let config = data.join("collector.yaml");
    let checked = kubewake().args(["collector", "validate", "--config"]).arg(config).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
