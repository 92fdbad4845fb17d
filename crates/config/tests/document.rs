//! Valid documents: fields of the model, defaults, and warnings.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{path::PathBuf, time::Duration};

use kubewake_config::{
    ComponentId, FixedSources, LoadedDocument, SecretString, load,
    model::{
        BasicAuth, BearerTokenAuth, BodyEncoding, ClientKeepalive, CollectorDocument, CompressionType, DebugVerbosity,
        ExporterConfig, ExtensionConfig, FileFormat, GroupBy, KeyPair, LogEncoding, LogLevel, MemoryLimit,
        MetricsLevel, NopExporter, OtlpGrpcExporter, OtlpHttpExporter, PemSource, ProcessorConfig, QueueBatch,
        QueueConfig, QueueSizer, ReceiverConfig, RetryConfig, TlsVersion,
    },
};

/// A document whose only exporter has these settings and is called `x`.
fn with_exporter(kind: &str, settings: &str) -> LoadedDocument {
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\n\
         exporters:\n  {kind}/x: {settings}\n\
         service: {{pipelines: {{traces: {{receivers: [otlp], exporters: [{kind}/x]}}}}}}\n"
    );
    let sources = FixedSources::new()
        .with_env("SIZE", "7")
        .with_env("ENDPOINT", "backend:4317")
        .with_env("ZERO", "0123")
        .with_file("headers.yaml", "{a: '1', b: '2'}");
    load(&text, &sources).unwrap_or_else(|errors| panic!("{settings}\n{errors}"))
}

fn exporter(document: &CollectorDocument) -> &ExporterConfig {
    document.exporters.values().next().unwrap()
}

fn grpc(settings: &str) -> OtlpGrpcExporter {
    match exporter(&with_exporter("otlp", settings).document) {
        ExporterConfig::OtlpGrpc(exporter) => exporter.clone(),
        other => panic!("{other:?}"),
    }
}

fn http(settings: &str) -> OtlpHttpExporter {
    match exporter(&with_exporter("otlphttp", settings).document) {
        ExporterConfig::OtlpHttp(exporter) => exporter.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_document_is_read() {
    let text = include_str!("golden/valid.yaml");
    let loaded = load(text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(loaded.warnings, []);
    let CollectorDocument { receivers, processors, exporters, connectors, extensions, service } = loaded.document;
    assert!(connectors.is_empty());

    let ReceiverConfig::Otlp(receiver) = &receivers[&ComponentId::new("otlp")] else { panic!() };
    let grpc = receiver.grpc.as_ref().unwrap();
    let http = receiver.http.as_ref().unwrap();
    assert_eq!(grpc.endpoint, "0.0.0.0:4317");
    assert_eq!(grpc.max_message_bytes, 16 << 20);
    assert_eq!(grpc.keepalive.max_connection_age, Some(Duration::from_secs(90)));
    assert_eq!(grpc.auth, Some(ComponentId::new("bearertokenauth/in")));
    let tls = grpc.tls.as_ref().unwrap();
    assert_eq!(tls.min_version, TlsVersion::V1_3);
    assert_eq!(tls.client_ca, Some(PemSource::File("/ca.pem".into())));
    assert_eq!(http.endpoint, "localhost:4318");
    assert_eq!(http.traces_path, "/in/traces");
    assert_eq!(http.cors.as_ref().unwrap().allowed_origins, ["https://*.example.com"]);
    assert_eq!(http.compression_algorithms, [CompressionType::None, CompressionType::Gzip, CompressionType::Zlib]);
    assert_eq!((http.read_timeout, http.idle_timeout), (Some(Duration::from_secs(5)), None));

    let ProcessorConfig::MemoryLimiter(limiter) = &processors[&ComponentId::new("memory_limiter")] else { panic!() };
    assert_eq!(limiter.limit, MemoryLimit::Bytes { limit: 100 << 20, spike: 20 << 20 });
    let ProcessorConfig::Batch(batch) = &processors[&ComponentId::new("batch")] else { panic!() };
    assert_eq!((batch.timeout, batch.send_batch_size), (Duration::from_millis(500), 100));
    assert_eq!(batch.metadata_keys, ["x-tenant"]);

    let ExporterConfig::File(file) = &exporters[&ComponentId::new("file")] else { panic!() };
    assert_eq!((file.path.clone(), file.format), (PathBuf::from("/tmp/out"), FileFormat::Proto));
    assert_eq!(file.rotation.as_ref().unwrap().max_megabytes, 5);
    let ExporterConfig::Debug(debug) = &exporters[&ComponentId::new("debug")] else { panic!() };
    assert_eq!(debug.verbosity, DebugVerbosity::Detailed);
    assert_eq!(exporters[&ComponentId::new("nop")], ExporterConfig::Nop(NopExporter));

    let ExtensionConfig::BasicAuth(BasicAuth::Client(basic)) = &extensions[&ComponentId::new("basicauth")] else {
        panic!()
    };
    assert_eq!((basic.username.as_str(), basic.password.reveal()), ("user", "pass"));
    let ExtensionConfig::BearerTokenAuth(BearerTokenAuth { tokens, scheme, .. }) =
        &extensions[&ComponentId::new("bearertokenauth/in")]
    else {
        panic!()
    };
    assert_eq!((tokens.len(), scheme.as_str()), (2, "Bearer"));
    let ExtensionConfig::OAuth2Client(oauth) = &extensions[&ComponentId::new("oauth2client")] else { panic!() };
    assert_eq!(oauth.scopes, ["a", "b"]);
    assert_eq!(oauth.endpoint_params, [("audience".to_owned(), "x".to_owned())]);
    let ExtensionConfig::HealthCheck(health) = &extensions[&ComponentId::new("health_check")] else { panic!() };
    assert_eq!((health.endpoint.as_str(), health.path.as_str()), ("0.0.0.0:13133", "/health"));

    assert_eq!(service.extensions.len(), 4);
    assert_eq!(service.pipelines.keys().map(ToString::to_string).collect::<Vec<_>>(), ["traces", "metrics/a", "logs"]);
    assert_eq!((service.telemetry.logs.level, service.telemetry.logs.encoding), (LogLevel::Warn, LogEncoding::Json));
    assert_eq!(service.telemetry.metrics.level, MetricsLevel::Detailed);
    assert_eq!(service.telemetry.metrics.endpoint.as_deref(), Some("0.0.0.0:8889"));
    assert_eq!(service.telemetry.resource["service.name"], "edge");
}

#[test]
fn defaults_are_the_collectors() {
    let exporter = grpc("{endpoint: 'backend:4317'}");
    assert_eq!(exporter.endpoint, "backend:4317");
    assert_eq!(exporter.compression, CompressionType::Gzip);
    assert_eq!(exporter.timeout, Some(Duration::from_secs(5)));
    assert_eq!(exporter.retry, Some(RetryConfig::default()));
    assert_eq!(exporter.queue, Some(QueueConfig::default()));
    assert!(!exporter.tls.insecure);
    assert_eq!(exporter.keepalive, None);
    let exporter = http("{endpoint: 'http://backend:4318'}");
    assert_eq!(exporter.http.timeout, Some(Duration::from_secs(30)));
    assert_eq!(exporter.encoding, BodyEncoding::Proto);
    let document = with_exporter("nop", "").document;
    assert_eq!(document.service.telemetry.metrics.endpoint.as_deref(), Some("localhost:8888"));
    let ReceiverConfig::Otlp(receiver) = document.receivers.values().next().unwrap() else { panic!() };
    assert_eq!(receiver.grpc.as_ref().unwrap().endpoint, "localhost:4317");
    assert_eq!(receiver.http, None);
}

#[test]
fn a_grpc_endpoint_may_carry_a_scheme() {
    let cases = [
        ("{endpoint: 'backend:4317'}", "backend:4317", false),
        ("{endpoint: 'http://backend:4317'}", "backend:4317", true),
        ("{endpoint: 'https://backend:4317', tls: {insecure: true}}", "backend:4317", false),
        ("{endpoint: 'dns:///backend:4317'}", "backend:4317", false),
        ("{endpoint: 'dns://8.8.8.8/backend:4317'}", "backend:4317", false),
        ("{endpoint: 'dns://backend:4317'}", "backend:4317", false),
        ("{endpoint: '[::1]:4317', tls: {insecure: true}}", "[::1]:4317", true),
        ("{endpoint: ':4317'}", ":4317", false),
    ];
    for (settings, endpoint, insecure) in cases {
        let exporter = grpc(settings);
        assert_eq!((exporter.endpoint.as_str(), exporter.tls.insecure), (endpoint, insecure), "{settings}");
    }
}

#[test]
fn http_endpoints_are_joined_as_the_collector_joins_them() {
    let cases = [
        ("{endpoint: 'http://b:4318'}", "http://b:4318/v1/traces"),
        ("{endpoint: 'http://b:4318/'}", "http://b:4318/v1/traces"),
        ("{endpoint: 'https://b/otlp'}", "https://b/otlp/v1/traces"),
        ("{endpoint: 'http://b', traces_endpoint: 'http://c/in'}", "http://c/in"),
        ("{traces_endpoint: 'http://[::1]:1/in'}", "http://[::1]:1/in"),
    ];
    for (settings, url) in cases {
        assert_eq!(http(settings).traces_url.as_deref(), Some(url), "{settings}");
    }
    let exporter = http("{traces_endpoint: 'http://c/in'}");
    assert_eq!((exporter.metrics_url, exporter.logs_url), (None, None));
}

#[test]
fn queue_retry_and_timeout_can_be_changed_and_switched_off() {
    let queue = |settings: &str| grpc(&format!("{{endpoint: 'b:1', sending_queue: {settings}}}")).queue;
    assert_eq!(queue("{enabled: false}"), None);
    assert_eq!(queue("{queue_size: '${env:SIZE}'}").unwrap().queue_size, 7);
    let default =
        QueueBatch { flush_timeout: Duration::from_millis(200), min_size: 8192, max_size: 0, sizer: QueueSizer::Items };
    assert_eq!(queue("{batch: }").unwrap().batch, Some(default.clone()));
    assert_eq!(queue("{batch: {enabled: false}}").unwrap().batch, None);
    let bytes = QueueBatch { sizer: QueueSizer::Bytes, ..default };
    assert_eq!(queue("{sizer: bytes, queue_size: 10000, batch: {}}").unwrap().batch, Some(bytes));

    let retry = |settings: &str| grpc(&format!("{{endpoint: 'b:1', retry_on_failure: {settings}}}")).retry;
    assert_eq!(retry("{enabled: false, multiplier: -1}"), None);
    assert_eq!(retry("{max_elapsed_time: 0}").unwrap().max_elapsed_time, None);
    assert_eq!(retry("{initial_interval: 1500ms}").unwrap().initial_interval, Duration::from_millis(1500));
    assert_eq!(grpc("{endpoint: 'b:1', timeout: 0}").timeout, None);
}

#[test]
fn headers_are_a_map_or_a_list() {
    let expected = vec![("a".to_owned(), SecretString::new("1")), ("b".to_owned(), SecretString::new("2"))];
    let forms = ["{b: '2', a: '1'}", "[{name: a, value: '1'}, {name: b, value: '2'}]", "'${file:headers.yaml}'"];
    for form in forms {
        assert_eq!(grpc(&format!("{{endpoint: 'b:1', headers: {form}}}")).headers, expected, "{form}");
    }
    let zero = grpc("{endpoint: 'b:1', headers: {x: '${env:ZERO}'}}").headers;
    assert_eq!(zero[0].1.reveal(), "0123");
}

#[test]
fn clients_have_tls_and_keepalive() {
    let exporter = grpc(
        "{endpoint: 'b:1', keepalive: {time: 30s, permit_without_stream: true}, \
         tls: {ca_file: /ca, cert_pem: CERT, key_pem: KEY, min_version: '1.3', include_system_ca_certs_pool: true}}",
    );
    let keepalive = ClientKeepalive {
        time: Duration::from_secs(30),
        timeout: Duration::from_secs(20),
        permit_without_stream: true,
    };
    assert_eq!(exporter.keepalive, Some(keepalive));
    let identity = KeyPair {
        cert: PemSource::Inline(SecretString::new("CERT")),
        key: PemSource::Inline(SecretString::new("KEY")),
    };
    assert_eq!(exporter.tls.identity, Some(identity));
    assert_eq!(exporter.tls.ca, Some(PemSource::File("/ca".into())));
    assert!(exporter.tls.include_system_roots);
}

#[test]
fn what_has_no_effect_is_taken_with_a_warning_where_it_could_mislead() {
    let silent = [
        ("otlp", "{endpoint: 'b:1', read_buffer_size: 1, write_buffer_size: 2, wait_for_ready: true}"),
        ("otlp", "{endpoint: 'b:1', balancer_name: round_robin, middlewares: [], keepalive: }"),
        ("otlphttp", "{endpoint: 'http://b', max_idle_conns: 1, idle_conn_timeout: 1s, force_attempt_http2: false}"),
        ("otlphttp", "{endpoint: 'http://b', http2_ping_timeout: 1s, http2_read_idle_timeout: 1s, proxy_url: ''}"),
        ("debug", "{use_internal_logger: false, output_paths: [stdout]}"),
        ("debug", "{sending_queue: {enabled: false}}"),
    ];
    for (kind, settings) in silent {
        assert_eq!(with_exporter(kind, settings).warnings, [], "{settings}");
    }
    let warned = [
        ("otlp", "{endpoint: 'http://b:1'}", "disables TLS"),
        ("otlp", "{endpoint: 'b:1', timeout: 10}", "nanoseconds"),
        ("otlp", "{endpoint: 'b:1', keepalive: {time: 1s}}", "raised to 10s"),
        ("otlp", "{endpoint: 'b:1', tls: {min_version: '1.0'}}", "below 1.2"),
        ("otlp", "{endpoint: 'b:1', tls: {insecure: true, ca_file: /ca}}", "TLS is used"),
        ("otlp", "{endpoint: 'b:1', sending_queue: {queue_size: 5.5}}", "fraction is cut off"),
        ("otlp", "{endpoint: 'b:1', headers: {x: '${env:NOBODY}'}}", "`NOBODY` is not set"),
        ("otlphttp", "{endpoint: 'http://b', compression_params: {level: 3}}", "`level` has no effect"),
        ("otlphttp", "{endpoint: 'http://b', disable_keep_alives: true}", "`disable_keep_alives` has no effect"),
        ("otlphttp", "{endpoint: 'http://b', profiles_endpoint: 'http://c'}", "`profiles_endpoint` has no effect"),
    ];
    for (kind, settings, expected) in warned {
        let warnings = with_exporter(kind, settings).warnings;
        assert_eq!(warnings.len(), 1, "{settings}: {warnings:?}");
        assert!(warnings[0].message.contains(expected), "{settings}: {}", warnings[0]);
    }
}

#[test]
fn files_may_be_grouped_compressed_and_in_new_directories() {
    let file = |settings: &str| match exporter(&with_exporter("file", settings).document) {
        ExporterConfig::File(file) => file.clone(),
        other => panic!("{other:?}"),
    };
    let all = "{path: '/a/*.json', compression: zstd, create_directory: true, directory_permissions: '0700', \
               group_by: {enabled: true, resource_attribute: tenant, max_open_files: 7}}";
    let all = file(all);
    let group = GroupBy { resource_attribute: "tenant".into(), max_open_files: 7 };
    assert_eq!((all.zstd, all.create_directory, all.group_by), (true, Some(0o700), Some(group)));
    let few = file("{path: '/a/*.json', compression: '', create_directory: true, group_by: {enabled: true}}");
    assert_eq!((few.zstd, few.create_directory, few.group_by), (false, Some(0o755), Some(GroupBy::default())));
    let none = file("{path: /a, group_by: {enabled: false, max_open_files: 0}}");
    assert_eq!((none.zstd, none.create_directory, none.group_by), (false, None, None));
}

#[test]
fn files_that_were_read_are_told() {
    let loaded = with_exporter("otlp", "{endpoint: 'b:1', headers: '${file:headers.yaml}'}");
    assert_eq!(loaded.files.into_iter().collect::<Vec<_>>(), [PathBuf::from("headers.yaml")]);
}

#[test]
fn a_document_that_is_refused_tells_its_warnings_too() {
    let text = "receivers:\n  otlp: {protocols: {grpc: }}\n  otlp/unused: {protocols: {grpc: }}\nexporters:\n  nop:\n  debug: {verbosity: loud}\n\
                service:\n  pipelines: {traces: {receivers: [otlp], exporters: [nop, debug]}}\n";
    let errors = load(text, &FixedSources::new()).unwrap_err();
    assert_eq!((errors.problems().len(), errors.warnings().len()), (1, 1), "{errors}");
    let shown = errors.in_file("c.yaml").to_string();
    assert!(shown.contains("warning: the receiver `otlp/unused`") && shown.contains("--> c.yaml:3:3"), "{shown}");
    assert!(shown.ends_with("1 error; 1 warning"), "{shown}");
}
