//! The document changes while the collector runs.

use std::{fs, net::TcpListener, os::unix::fs::symlink, path::PathBuf};

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, Http1Connection, LoadGenerator, SinkProcess, TestAuthority, config::otlp_at, curl,
    free_address, grpc_to, http, http_to, otlp::spans, wait_until,
};

fn to(sink: &SinkProcess) -> ConfigBuilder {
    ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))
}

fn send(collector: &CollectorProcess, name: &str) {
    let answer = http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&[name]));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Sends until `sink` is where it goes.
fn goes_to(collector: &CollectorProcess, sink: &SinkProcess, name: &str) {
    send(collector, name);
    wait_until("the span goes to the right backend", || sink.span_names() == [name]);
}

#[test]
fn sighup_loads_the_document_again() {
    let one = SinkProcess::start();
    let two = SinkProcess::start();
    let collector = CollectorProcess::with_config(to(&one)).start();
    goes_to(&collector, &one, "before");
    collector.signal("HUP");
    wait_until("the document is loaded again", || collector.reloads("applied") == 2);
    fs::write(collector.folder().join("collector.yaml"), to(&two).to_string()).unwrap();
    collector.signal("HUP");
    wait_until("the new document is loaded", || collector.reloads("applied") >= 3);
    goes_to(&collector, &two, "after");
    assert_eq!(one.span_names(), ["before"]);
}

#[test]
fn a_file_that_is_replaced_or_rewritten_is_loaded() {
    let one = SinkProcess::start();
    let two = SinkProcess::start();
    let three = SinkProcess::start();
    let collector = CollectorProcess::with_config(to(&one)).start();
    let first = collector.status()["revision"].clone();
    collector.reload(to(&two));
    goes_to(&collector, &two, "replaced");
    let second = collector.status()["revision"].clone();
    assert_eq!(second["number"], 2);
    assert_ne!(first["hash"], second["hash"]);
    fs::write(collector.folder().join("collector.yaml"), to(&three).to_string()).unwrap();
    wait_until("the document is loaded", || collector.reloads("applied") > 2);
    goes_to(&collector, &three, "rewritten");
}

#[test]
fn a_swapped_symlink_is_a_change() {
    let one = SinkProcess::start();
    let two = SinkProcess::start();
    let builder = CollectorProcess::with_config("");
    // As the kubelet mounts a ConfigMap.
    let mount = builder.folder().join("mount");
    let version = |name: &str, config: &ConfigBuilder| {
        fs::create_dir_all(mount.join(name)).unwrap();
        fs::write(mount.join(name).join("collector.yaml"), config.to_string()).unwrap();
    };
    version("..v1", &to(&one));
    symlink("..v1", mount.join("..data")).unwrap();
    symlink("..data/collector.yaml", mount.join("collector.yaml")).unwrap();
    let collector = builder.config_at(mount.join("collector.yaml")).start();
    goes_to(&collector, &one, "before");
    version("..v2", &to(&two));
    symlink("..v2", mount.join("..data_tmp")).unwrap();
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    fs::remove_dir_all(mount.join("..v1")).unwrap();
    wait_until("the document is loaded", || collector.reloads("applied") == 2);
    goes_to(&collector, &two, "after");
}

#[test]
fn files_are_found_and_followed_under_the_root_that_a_node_names() {
    let one = SinkProcess::start();
    let two = SinkProcess::start();
    let builder = CollectorProcess::with_config("");
    // As the embedded cluster mounts volumes: there is no such path on this machine.
    let root = builder.folder().join("root");
    let volume = builder.folder().join("volume");
    let version = |name: &str, backend: &SinkProcess| {
        fs::create_dir_all(volume.join(name)).unwrap();
        let text = ConfigBuilder::exporting_to(
            "otlp",
            r#"{endpoint: "${file:/etc/kubewake-story/endpoint}", tls: {insecure: true}}"#,
        )
        .to_string();
        fs::write(volume.join(name).join("collector.yaml"), text).unwrap();
        fs::write(volume.join(name).join("endpoint"), backend.address().to_string()).unwrap();
        symlink(name, volume.join("..data_tmp")).unwrap();
        fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
    };
    version("..v1", &one);
    symlink("..data/collector.yaml", volume.join("collector.yaml")).unwrap();
    symlink("..data/endpoint", volume.join("endpoint")).unwrap();
    fs::create_dir_all(root.join("etc")).unwrap();
    symlink(&volume, root.join("etc/kubewake-story")).unwrap();
    let config = PathBuf::from("/etc/kubewake-story/collector.yaml");
    let collector = builder.config_at(config).env("KUBEWAKE_ROOT", root).start();
    goes_to(&collector, &one, "before");
    version("..v2", &two);
    wait_until("the document is loaded", || collector.reloads("applied") == 2);
    goes_to(&collector, &two, "after");
}

#[test]
fn a_refused_document_changes_nothing_and_is_seen() {
    let one = SinkProcess::start();
    let two = SinkProcess::start();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = taken.local_addr().unwrap();
    let collector = CollectorProcess::with_config(to(&one)).start();
    let in_force = collector.status()["revision"].clone();
    // Each of them is right in a part that must not come into force either.
    let invalid = to(&two).pipeline("traces", "nothing_of_this_name", "otlp");
    let reasons = collector.reload_refused(invalid);
    assert!(reasons.contains("nothing_of_this_name"), "{reasons}");
    let reasons = collector.reload_refused(to(&two).receiver("otlp/busy", otlp_at(busy, "127.0.0.1:0")).pipeline_of(
        "traces",
        "otlp, otlp/busy",
        "",
        "otlp",
    ));
    assert!(reasons.contains(&busy.to_string()), "{reasons}");
    let health = format!(r#"{{endpoint: "{busy}"}}"#);
    assert!(collector.reload_refused(to(&two).extension("health_check/more", health)).contains(&busy.to_string()));
    collector.reload_refused("{not: yaml");
    fs::remove_file(collector.folder().join("collector.yaml")).unwrap();
    wait_until("the missing file is refused", || collector.reloads("refused") == 5);

    goes_to(&collector, &one, "as before");
    let status = collector.status();
    assert_eq!(status["revision"], in_force);
    assert!(!status["refused"]["hash"].is_null() && !status["refused"]["time"].is_null(), "{status}");
    assert_eq!((collector.reloads("applied"), collector.health("/readyz").status), (1, 200));
    assert!(collector.logs().contains(&busy.to_string()), "{}", collector.logs());

    collector.reload(to(&two));
    assert!(collector.status()["refused"].is_null(), "a good one is all that counts");
    goes_to(&collector, &two, "after");
    assert_eq!(two.items(), 1);
}

#[test]
fn what_was_queued_goes_to_the_new_endpoint() {
    let down = free_address();
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(down))).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "20"]);
    assert_eq!(report.items("acknowledged"), 2000);
    wait_until("the pipeline fails to deliver", || {
        collector.status()["pipelines"]["traces"]["failures"].as_u64() > Some(1)
    });
    let sink = SinkProcess::start();
    collector.reload(to(&sink));
    sink.wait_for_all(&report.acknowledged);
    assert_eq!((sink.items(), sink.count("duplicates")), (2000, 0));
    assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0);
}

#[test]
fn a_hanging_backend_does_not_hold_back_what_is_queued() {
    let hanging = SinkProcess::hanging();
    let sink = SinkProcess::start();
    let settings = "tls: {insecure: true}, timeout: 1s, sending_queue: {num_consumers: 2}";
    let to = |sink: &SinkProcess| {
        ConfigBuilder::exporting_to("otlp", format!("{{endpoint: \"{}\", {settings}}}", sink.address()))
    };
    let collector = CollectorProcess::with_config(to(&hanging)).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "20"]);
    wait_until("two requests are in flight", || hanging.count("hanging") == 2);
    collector.reload(to(&sink));
    sink.wait_for_all(&report.acknowledged);
    assert_eq!((hanging.items(), sink.items()), (0, 2000));
}

#[test]
fn what_was_queued_goes_to_another_kind_of_exporter_or_is_tried_to_the_end() {
    let hanging = SinkProcess::hanging();
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(to(&hanging)).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "20"]);
    collector.reload(ConfigBuilder::exporting_to("otlphttp", http_to(sink.address())));
    hanging.recover();
    wait_until("all items have arrived", || hanging.items() + sink.items() == 2000);
    assert_eq!(hanging.missing(&report.acknowledged) + sink.missing(&report.acknowledged), 2000);
}

#[test]
fn a_removed_pipeline_delivers_what_it_holds() {
    let slow = SinkProcess::start_with(&["--delay", "20ms"]);
    let other = SinkProcess::start();
    let config = ConfigBuilder::new()
        .processor("batch", "{timeout: 10m, send_batch_size: 100000}")
        .exporter("otlp/slow", grpc_to(slow.address()).with_setting("sending_queue: {num_consumers: 1}"))
        .exporter("otlp/other", grpc_to(other.address()))
        .pipeline("traces/slow", "", "otlp/slow")
        .pipeline("traces/batched", "batch", "otlp/slow")
        .pipeline("traces/other", "", "otlp/other");
    let collector = CollectorProcess::with_config(&config).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "30", "--spans", "10"]);
    collector.reload(config.without_pipeline("traces/slow").without_pipeline("traces/batched"));
    wait_until("the slow backend has its items", || slow.items() == 600);
    assert_eq!(slow.missing(&report.acknowledged) + other.missing(&report.acknowledged), 0);
    let pipelines = collector.status()["pipelines"].clone();
    assert_eq!(pipelines.as_object().unwrap().keys().collect::<Vec<_>>(), ["traces/other"]);
}

#[test]
fn new_settings_of_a_batch_count_for_what_it_holds() {
    let sink = SinkProcess::start();
    let config = to(&sink).processor("batch", "{timeout: 10m}").pipeline("traces", "batch", "otlp");
    let collector = CollectorProcess::with_config(&config).start();
    send(&collector, "held");
    assert_eq!(sink.items(), 0);
    collector.reload(config.processor("batch", "{timeout: 10ms}"));
    sink.wait_for_items(1);
}

#[test]
fn a_receiver_moves_to_another_port() {
    let sink = SinkProcess::start();
    let old = free_address();
    let new = free_address();
    let collector = CollectorProcess::with_config(to(&sink).receiver("otlp", otlp_at("127.0.0.1:0", old))).start();
    let mut open = Http1Connection::connect(old);
    assert_eq!(open.post("/v1/traces", "application/x-protobuf", &spans(&["old"])).status, 200);
    collector.reload(to(&sink).receiver("otlp", otlp_at("127.0.0.1:0", new)));
    assert_eq!(http::post(new, "/v1/traces", "application/x-protobuf", &spans(&["new"])).status, 200);
    wait_until("the old door is closed", || TcpListener::bind(old).is_ok());
    sink.wait_for_items(2);
    // And back, where it was.
    collector.reload(to(&sink).receiver("otlp", otlp_at("127.0.0.1:0", old)));
    assert_eq!(http::post(old, "/v1/traces", "application/x-protobuf", &spans(&["old"])).status, 200);
}

#[test]
fn a_changed_certificate_is_served_to_new_connections() {
    let one = TestAuthority::new("one");
    let two = TestAuthority::new("two");
    let tls = r#"tls: {cert_file: "${env:DIR}/cert.pem", key_file: "${env:DIR}/key.pem"}"#;
    let receiver = format!(r#"{{protocols: {{http: {{endpoint: "127.0.0.1:0", {tls}}}}}}}"#);
    let first = one.sign("collector");
    let builder = CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "").receiver("otlp", receiver))
        .file("cert.pem", &first.cert)
        .file("key.pem", &first.key)
        .file("one.pem", one.pem())
        .file("two.pem", two.pem());
    let folder = builder.folder().to_owned();
    let collector = builder.start();
    let trusts = |authority: &str| {
        let url = format!("https://{}/v1/traces", collector.http());
        let ca = folder.join(authority).display().to_string();
        curl(["--cacert", &ca, "-H", "content-type: application/json", "-d", "{}", &url], b"").is_ok()
    };
    assert!(trusts("one.pem") && !trusts("two.pem"));
    let second = two.sign("collector");
    // Not at the same moment: what does not fit together must not come into force, nor stop what runs.
    fs::write(folder.join("cert.pem"), &second.cert).unwrap();
    wait_until("a certificate without its key is refused", || collector.reloads("refused") > 0);
    assert!(trusts("one.pem"));
    fs::write(folder.join("key.pem"), &second.key).unwrap();
    wait_until("the new certificate is served", || trusts("two.pem"));
    assert!(!trusts("one.pem"));
}
