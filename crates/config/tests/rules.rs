//! Refused documents: paths and messages.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use kubewake_config::{FixedSources, load};

const RECEIVERS: &str = "receivers:\n  otlp: {protocols: {grpc: }}\n";
const EXPORTERS: &str = "exporters:\n  nop:\n";
const PIPELINES: &str = "  pipelines: {traces: {receivers: [otlp], exporters: [nop]}}\n";

/// A valid document but for the part that the case writes.
fn document(section: &str, written: &str) -> String {
    let indented = |text: &str| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    let own = indented(written);
    match section {
        "receivers" => format!("{RECEIVERS}{own}{EXPORTERS}service:\n{PIPELINES}"),
        "exporters" => format!("{RECEIVERS}{EXPORTERS}{own}service:\n{PIPELINES}"),
        "service" => format!("{RECEIVERS}{EXPORTERS}service:\n{own}{PIPELINES}"),
        "pipelines" => format!("{RECEIVERS}{EXPORTERS}service:\n  pipelines:\n{}", indented(&own)),
        "" => written.to_owned(),
        other => format!("{RECEIVERS}{EXPORTERS}{other}:\n{own}service:\n{PIPELINES}"),
    }
}

/// Each case: section, content, then path and message of the one expected error.
fn refused(cases: &[(&str, &str, &str, &str)]) {
    let sources =
        FixedSources::new().with_env("BAD", "s3cret value").with_env("MAP", "{a: 1}").with_env("LIST", "[s3cret");
    for (section, written, path, words) in cases {
        let text = document(section, written);
        let errors = match load(&text, &sources) {
            Ok(_) => panic!("taken: {written}"),
            Err(errors) => errors,
        };
        let problems = errors.problems();
        assert_eq!(problems.len(), 1, "{written}\n{errors}");
        assert_eq!(problems[0].path, *path, "{written}\n{errors}");
        assert!(problems[0].to_string().contains(words), "{written}\nlacks {words:?}\n{errors}");
        assert!(!errors.to_string().contains("s3cret"), "{errors}");
    }
}

#[test]
fn types_are_strict() {
    let timeout = "exporters::otlp::timeout";
    refused(&[
        ("exporters", "otlp: {endpoint: 4317}", "exporters::otlp::endpoint", "must be text, not a number"),
        ("exporters", "otlp: {endpoint: [a]}", "exporters::otlp::endpoint", "must be text, not a list"),
        ("exporters", "otlp: {endpoint: 'a:1', timeout: true}", timeout, "must be a duration, not a boolean"),
        ("exporters", "otlp: {endpoint: 'a:1', timeout: 5d}", timeout, "\"5d\" has an unknown unit"),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', timeout: '${env:BAD}'}",
            timeout,
            "the value of ${env:BAD} is not a duration",
        ),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', tls: {insecure: 1}}",
            "exporters::otlp::tls::insecure",
            "must be a boolean",
        ),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', tls: '${env:BAD}'}",
            "exporters::otlp::tls",
            "must be a map, not the value of ${env:BAD}",
        ),
        ("exporters", "otlp: {endpoint: 'a:1', tls: '${env:LIST}'}", "exporters::otlp::tls", "not valid YAML: line"),
        ("exporters", "otlp: nothing", "exporters::otlp", "must be a map, not text"),
        ("exporters", "otlp: {endpoint: 'a:1', headers: {x: 5}}", "exporters::otlp::headers::x", "put it in quotes"),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', headers: 5}",
            "exporters::otlp::headers",
            "must be a map of names and values",
        ),
        ("exporters", "debug: '${env:MAP}'", "exporters::debug::a", "unknown field `a`"),
        ("processors", "batch: {send_batch_size: -1}", "processors::batch::send_batch_size", "must not be negative"),
        (
            "processors",
            "batch: {send_batch_size: 5000000000}",
            "processors::batch::send_batch_size",
            "must be at most 4294967295",
        ),
        ("receivers", "otlp/x: {protocols: [grpc]}", "receivers::otlp/x::protocols", "must be a map, not a list"),
    ]);
}

#[test]
fn endpoints_must_be_usable() {
    let grpc = "exporters::otlp::endpoint";
    let http = "exporters::otlphttp::endpoint";
    refused(&[
        ("exporters", "otlp: {endpoint: host}", grpc, "missing port"),
        ("exporters", "otlp: {endpoint: 'host:'}", grpc, "invalid port \"\""),
        ("exporters", "otlp: {endpoint: 'host:99999'}", grpc, "invalid port \"99999\""),
        ("exporters", "otlp: {endpoint: '::1:4317'}", grpc, "in brackets"),
        ("exporters", "otlp: {endpoint: 'https://host:4317/'}", grpc, "invalid port"),
        ("exporters", "otlp: {endpoint: 'unix:///run/x.sock'}", grpc, "not supported by this build"),
        ("exporters", "otlp: {endpoint: 'xds:///host:1'}", grpc, "not supported by this build"),
        ("exporters", "otlp: {endpoint: '${env:NOBODY}'}", grpc, "the value of ${env:NOBODY} is empty"),
        ("exporters", "otlp: {endpoint: '${env:BAD}'}", grpc, "the value of ${env:BAD} has no port"),
        ("exporters", "otlphttp: {endpoint: 'localhost:4318'}", http, "write http://localhost:4318 or https://"),
        ("exporters", "otlphttp: {endpoint: 'ftp://localhost'}", http, "must be a URL"),
        ("exporters", "otlphttp: {endpoint: 'http://'}", http, "has no host"),
        ("exporters", "otlphttp: {endpoint: 'http://a b'}", http, "spaces"),
        ("exporters", "otlphttp: {endpoint: 'http://a:b'}", http, "invalid port"),
        ("exporters", "otlphttp: {endpoint: 'http://u:s3cret@:x'}", http, "has no host"),
        ("exporters", "otlphttp: {endpoint: '${env:BAD}'}", http, "the value of ${env:BAD} does not begin"),
        ("exporters", "otlphttp: {traces_endpoint: x}", "exporters::otlphttp::traces_endpoint", "must be a URL"),
        ("exporters", "otlphttp: {endpoint: ''}", http, "at least one endpoint"),
    ]);
}

#[test]
fn listening_addresses_must_be_usable() {
    let grpc = "receivers::otlp/x::protocols::grpc::endpoint";
    let http = "receivers::otlp/x::protocols::http::endpoint";
    let health = "extensions::health_check::endpoint";
    let address = "service::telemetry::metrics::address";
    refused(&[
        ("receivers", "otlp/x: {protocols: {grpc: {endpoint: '0.0.0.0:99999'}}}", grpc, "invalid port \"99999\""),
        ("receivers", "otlp/x: {protocols: {grpc: {endpoint: ':otlp'}}}", grpc, "invalid port \"otlp\""),
        ("receivers", "otlp/x: {protocols: {grpc: {endpoint: '::1:4317'}}}", grpc, "in brackets"),
        ("receivers", "otlp/x: {protocols: {http: {endpoint: localhost}}}", http, "missing port"),
        ("receivers", "otlp/x: {protocols: {http: {endpoint: '${env:BAD}'}}}", http, "${env:BAD} has no port"),
        ("extensions", "health_check: {endpoint: 'localhost:70000'}", health, "invalid port \"70000\""),
        ("extensions", "health_check: {endpoint: ''}", health, "the `endpoint` is empty"),
        ("service", "telemetry: {metrics: {address: 'localhost:65536'}}", address, "invalid port \"65536\""),
        ("service", "telemetry: {metrics: {address: '::1:8888'}}", address, "in brackets"),
    ]);
    for address in [":4317", "0.0.0.0:0", "localhost:65535", "[::1]:4317", "[::]:4317", "collector.example:4317"] {
        let text = document("receivers", &format!("otlp/x: {{protocols: {{grpc: {{endpoint: '{address}'}}}}}}"));
        assert!(load(&text, &FixedSources::new()).is_ok(), "{address}");
    }
}

#[test]
fn queues_and_retries_have_rules() {
    let queue = |settings: &str| format!("otlp: {{endpoint: 'a:1', sending_queue: {settings}}}");
    let retry = |settings: &str| format!("otlp: {{endpoint: 'a:1', retry_on_failure: {settings}}}");
    let cases = [
        (queue("{num_consumers: 0}"), "sending_queue::num_consumers", "must be positive"),
        (queue("{queue_size: 0}"), "sending_queue::queue_size", "must be positive"),
        (queue("{storage: file_storage}"), "sending_queue::storage", "not supported by this build"),
        (queue("{enabled: maybe}"), "sending_queue::enabled", "must be a boolean"),
        (queue("{batch: {sizer: requests}}"), "sending_queue::batch::sizer", "not requests"),
        (queue("{batch: {flush_timeout: 0}}"), "sending_queue::batch::flush_timeout", "must be positive"),
        (queue("{batch: {max_size: 10}}"), "sending_queue::batch::max_size", "8192 by default"),
        (
            queue("{batch: {partition: {metadata_keys: [a]}}}"),
            "sending_queue::batch::partition::metadata_keys",
            "not supported",
        ),
        (queue("{sizer: items, queue_size: 10, batch: {}}"), "sending_queue::batch", "greater than `queue_size`"),
        (queue("{enabled: false, depth: 1}"), "sending_queue::depth", "unknown field"),
        (retry("{initial_interval: -1s}"), "retry_on_failure::initial_interval", "must not be negative"),
        (retry("{randomization_factor: 2}"), "retry_on_failure::randomization_factor", "between 0 and 1"),
        (
            retry("{max_elapsed_time: 40s, max_interval: 1m}"),
            "retry_on_failure::max_elapsed_time",
            "less than `max_interval`",
        ),
        (retry("{max_intervall: 1m}"), "retry_on_failure::max_intervall", "did you mean `max_interval`?"),
    ];
    for (written, path, words) in &cases {
        refused(&[("exporters", written, &format!("exporters::otlp::{path}"), words)]);
    }
}

#[test]
fn tls_and_headers_have_rules() {
    let tls = |settings: &str| format!("otlp: {{endpoint: 'a:1', tls: {settings}}}");
    let server = |settings: &str| format!("otlp/x: {{protocols: {{grpc: {{tls: {settings}}}}}}}");
    let cases = [
        ("exporters", tls("{cert_file: /c}"), "exporters::otlp::tls::key_file", "no key"),
        ("exporters", tls("{key_pem: s3cret}"), "exporters::otlp::tls::cert_file", "no certificate"),
        ("exporters", tls("{ca_file: /a, ca_pem: s3cret}"), "exporters::otlp::tls::ca_pem", "cannot both be set"),
        ("exporters", tls("{max_version: '1.2'}"), "exporters::otlp::tls::max_version", "not supported by this build"),
        (
            "exporters",
            tls("{max_version: '1.2', min_version: '1.3'}"),
            "exporters::otlp::tls::max_version",
            "greater than",
        ),
        (
            "exporters",
            tls("{cipher_suites: [X]}"),
            "exporters::otlp::tls::cipher_suites",
            "not supported by this build",
        ),
        ("exporters", tls("{tpm: {enabled: true}}"), "exporters::otlp::tls::tpm", "not supported by this build"),
        ("exporters", tls("{insecur: true}"), "exporters::otlp::tls::insecur", "did you mean `insecure`?"),
        ("receivers", server("{}"), "receivers::otlp/x::protocols::grpc::tls::cert_file", "needs a certificate"),
        (
            "receivers",
            server("{insecure: true, cert_file: /c, key_file: /k}"),
            "receivers::otlp/x::protocols::grpc::tls::insecure",
            "unknown field",
        ),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', headers: {'a b': x}}".into(),
            "exporters::otlp::headers::a***",
            "contains invalid characters",
        ),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', headers: {a: \"s3cret\\n\"}}".into(),
            "exporters::otlp::headers::a",
            "line break",
        ),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', headers: [{value: s3cret}]}".into(),
            "exporters::otlp::headers::0::name",
            "needs a name",
        ),
        ("exporters", "otlp: {endpoint: 'a:1', compression: lz4}".into(), "exporters::otlp::compression", "gRPC"),
        (
            "exporters",
            "otlp: {endpoint: 'a:1', compression: gzp}".into(),
            "exporters::otlp::compression",
            "did you mean `gzip`?",
        ),
    ];
    for (section, written, path, words) in &cases {
        refused(&[(section, written, path, words)]);
    }
}

#[test]
fn components_must_exist() {
    refused(&[
        ("exporters", "logging: {loglevel: debug}", "exporters::logging", "use `debug`"),
        ("extensions", "memory_ballast: {}", "extensions::memory_ballast", "remove it"),
        ("receivers", "oltp/x: {}", "receivers::oltp/x", "did you mean `otlp`?"),
        ("receivers", "hostmetrics: {}", "receivers::hostmetrics", "not supported by this build"),
        ("exporters", "otlphtp: {}", "exporters::otlphtp", "did you mean `otlphttp`?"),
        ("processors", "transform: {}", "processors::transform", "not supported by this build"),
        ("extensions", "pprof: {}", "extensions::pprof", "not supported by this build"),
        ("connectors", "count: {}", "connectors::count", "not supported by this build"),
        ("recievers", "x: {}", "recievers", "did you mean `receivers`?"),
        ("exporters", "' nop': {}", "exporters::***", "already defined"),
    ]);
}

#[test]
fn files_have_rules() {
    let group = |path: &str, group: &str| format!("file: {{path: {path}, group_by: {{enabled: true, {group}}}}}");
    let cases = [
        ("file: {path: a, append: true, compression: zstd}".into(), "append", "`append` and `compression`"),
        ("file: {path: a, append: true, rotation: }".into(), "append", "`append` and `rotation`"),
        ("file: {path: a, compression: gzip}".into(), "compression", "zstd"),
        (
            "file: {path: a, directory_permissions: '0755'}".into(),
            "directory_permissions",
            "without `create_directory`",
        ),
        (
            "file: {path: a, create_directory: true, directory_permissions: '0999'}".into(),
            "directory_permissions",
            "in octal",
        ),
        (
            "file: {path: a, create_directory: true, directory_permissions: '7755'}".into(),
            "directory_permissions",
            "in octal",
        ),
        (group("/a.json", ""), "path", "one `*`"),
        (group("/*/*.json", ""), "path", "one `*`"),
        (group("'*.json'", ""), "path", "not begin with it"),
        (group("/*.json", "resource_attribute: ''"), "group_by::resource_attribute", "is empty"),
        (group("/*.json", "max_open_files: 0"), "group_by::max_open_files", "at least 1"),
    ];
    for (written, path, words) in &cases {
        refused(&[("exporters", written, &format!("exporters::file::{path}"), words)]);
    }
}

#[test]
fn a_document_must_have_pipelines() {
    for service in ["", "service:", "service: {pipelines: }", "service: {pipelines: {}}"] {
        let text = format!("receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{nop: }}\n{service}\n");
        let errors = load(&text, &FixedSources::new()).unwrap_err();
        let paths: Vec<&str> = errors.problems().iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["service::pipelines"], "{errors}");
    }
}

#[test]
fn pipelines_have_rules() {
    let traces = "service::pipelines::traces";
    refused(&[
        (
            "pipelines",
            "traces: {receivers: [otpl], exporters: [nop]}",
            "service::pipelines::traces::receivers",
            "did you mean `otlp`?",
        ),
        ("pipelines", "traces: {receivers: [otlp]}", "service::pipelines::traces::exporters", "at least one exporter"),
        (
            "pipelines",
            "traces: {receivers: [5], exporters: [nop]}",
            "service::pipelines::traces::receivers::0",
            "must be text",
        ),
        (
            "pipelines",
            "traces: {receivers: ['/x'], exporters: [nop]}",
            "service::pipelines::traces::receivers::0",
            "nothing before",
        ),
        (
            "pipelines",
            "traces: {receiver: [otlp], receivers: [otlp], exporters: [nop]}",
            "service::pipelines::traces::receiver",
            "did you mean `receivers`?",
        ),
        ("pipelines", "traces: nothing\nlogs: {receivers: [otlp], exporters: [nop]}", traces, "must be a map"),
        (
            "pipelines",
            "trace: {receivers: [otlp], exporters: [nop]}",
            "service::pipelines::trace",
            "did you mean `traces`?",
        ),
        (
            "pipelines",
            "profiles: {receivers: [otlp], exporters: [nop]}",
            "service::pipelines::profiles",
            "not supported by this build",
        ),
        ("pipelines", "traces/: {receivers: [otlp], exporters: [nop]}", "service::pipelines::traces/", "nothing after"),
        ("service", "extensions: [health_check]", "service::extensions", "define it under `extensions`"),
        ("service", "extensions: health_check", "service::extensions", "must be a list"),
        (
            "pipelines",
            "traces: {receivers: [otlp], exporters: [nop], uid: [a]}",
            "service::pipelines::traces::uid",
            "must be text, not a list",
        ),
        (
            "",
            "receivers: {otlp: {protocols: {grpc: }}}\nexporters: {otlphttp: {metrics_endpoint: 'http://a'}}\nservice: {pipelines: {traces: {receivers: [otlp], exporters: [otlphttp]}}}",
            "service::pipelines::traces::exporters",
            "no endpoint for traces",
        ),
        ("", "- a", "", "the document must be a map, not a list"),
    ]);
}

#[test]
fn telemetry_has_rules() {
    refused(&[
        ("service", "telemetry: {logs: {level: loud}}", "service::telemetry::logs::level", "known values"),
        ("service", "telemetry: {logs: {encoding: xml}}", "service::telemetry::logs::encoding", "console, json"),
        ("service", "telemetry: {metrics: {readers: []}}", "service::telemetry::metrics::readers", "must not be empty"),
        (
            "service",
            "telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: a}}}}]}}",
            "service::telemetry::metrics::readers::0::pull::exporter::prometheus::port",
            "must be set",
        ),
        ("service", "telemetry: {metrics: {address: nowhere}}", "service::telemetry::metrics::address", "host:port"),
        (
            "service",
            "telemetry: {metrics: {views: [{}]}}",
            "service::telemetry::metrics::views",
            "only when `level` is detailed",
        ),
        ("service", "telemetry: {logz: {}}", "service::telemetry::logz", "did you mean `logs`?"),
        ("service", "telemetry: {resource: {a: 5}}", "service::telemetry::resource::a", "must be text"),
    ]);
}

#[test]
fn extensions_have_rules() {
    refused(&[
        ("extensions", "basicauth: {}", "extensions::basicauth::htpasswd", "no credentials"),
        ("extensions", "basicauth: {htpasswd: {}}", "extensions::basicauth::htpasswd::file", "no credentials"),
        (
            "extensions",
            "basicauth: {client_auth: {password: s3cret}}",
            "extensions::basicauth::client_auth::username",
            "no user name",
        ),
        (
            "extensions",
            "basicauth: {htpasswd: {inline: s3cret}, client_auth: {username: a}}",
            "extensions::basicauth::client_auth",
            "cannot both",
        ),
        ("extensions", "bearertokenauth: {}", "extensions::bearertokenauth::token", "no token"),
        (
            "extensions",
            "bearertokenauth: {token: s3cret, tokens: [s3cret]}",
            "extensions::bearertokenauth::tokens",
            "cannot both",
        ),
        (
            "extensions",
            "oauth2client: {client_id: a, client_secret: s3cret}",
            "extensions::oauth2client::token_url",
            "no `token_url`",
        ),
        (
            "extensions",
            "oauth2client: {client_id: a, client_secret: s3cret, token_url: b, audience: c}",
            "extensions::oauth2client::audience",
            "not supported",
        ),
        ("extensions", "health_check: {path: health}", "extensions::health_check::path", "must begin with /"),
        (
            "extensions",
            "health_check: {response_body: {healthly: ok}}",
            "extensions::health_check::response_body::healthly",
            "did you mean `healthy`?",
        ),
    ]);
}

#[test]
fn authenticators_must_be_defined_run_and_fit() {
    let document = |extension: &str, running: &str, server: &str, client: &str| {
        format!(
            "receivers: {{otlp: {{protocols: {{grpc: {{{server}}}}}}}}}\n\
             exporters: {{otlp: {{endpoint: 'a:1', {client}}}}}\n\
             extensions: {{{extension}}}\n\
             service: {{extensions: [{running}], pipelines: {{traces: {{receivers: [otlp], exporters: [otlp]}}}}}}\n"
        )
    };
    let auth = |id: &str| format!("auth: {{authenticator: {id}}}");
    let server = "receivers::otlp::protocols::grpc::auth::authenticator";
    let client = "exporters::otlp::auth::authenticator";
    let basic_client = "basicauth: {client_auth: {username: u}}";
    let basic_server = "basicauth: {htpasswd: {file: /h}}";
    let oauth = "oauth2client: {client_id: a, client_secret: b, token_url: c}";
    let cases = [
        (document("", "", &auth("basicauth"), ""), server, "not configured"),
        (document("", "", "", &auth("basicauth")), client, "not configured"),
        (document(basic_server, "", &auth("basicauth"), ""), server, "is not enabled"),
        (document(basic_client, "basicauth", &auth("basicauth"), ""), server, "is not a server authenticator"),
        (document(basic_server, "basicauth", "", &auth("basicauth")), client, "is not a client authenticator"),
        (document(oauth, "oauth2client", &auth("oauth2client"), ""), server, "is not a server authenticator"),
        (
            document("health_check: {}", "health_check", "", &auth("health_check")),
            client,
            "is not a client authenticator",
        ),
        (document("", "", "auth: {}", ""), server, "has no `authenticator`"),
        (
            document("", "", "auth: {request_params: [a], enabled: false}", ""),
            "receivers::otlp::protocols::grpc::auth::request_params",
            "not supported",
        ),
    ];
    for (text, path, words) in &cases {
        refused(&[("", text, path, words)]);
    }
    let valid = [
        document(basic_server, "basicauth", &auth("basicauth"), ""),
        document(basic_client, "basicauth", "", &auth("basicauth")),
        document(oauth, "oauth2client", "", &auth("oauth2client")),
        document("bearertokenauth: {token: x}", "bearertokenauth", &auth("bearertokenauth"), &auth("bearertokenauth")),
    ];
    for text in valid {
        assert!(load(&text, &FixedSources::new()).is_ok(), "{text}");
    }
}

#[test]
fn what_nothing_uses_is_checked_and_warned_about() {
    let text = document("exporters", "otlp/unused: {endpoint: 'a:1'}")
        + "processors: {batch: }\nextensions: {health_check: }\n";
    let loaded = load(&text, &FixedSources::new()).unwrap();
    let told: Vec<_> = loaded.warnings.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(told, ["exporters::otlp/unused", "processors::batch", "extensions::health_check"]);
}

#[test]
fn samplers_are_checked() {
    let at = "processors::probabilistic_sampler::sampling_percentage";
    let mode = "processors::probabilistic_sampler::mode";
    let precision = "processors::probabilistic_sampler::sampling_precision";
    refused(&[
        ("processors", "probabilistic_sampler: {sampling_percentage: -15.3}", at, "must not be negative"),
        ("processors", "probabilistic_sampler: {sampling_percentage: .inf}", at, "must be a number from 0 to 100"),
        ("processors", "probabilistic_sampler: {sampling_percentage: .nan}", at, "must be a number from 0 to 100"),
        ("processors", "probabilistic_sampler: {sampling_percentage: 1e-20}", at, "is smaller than one in 2^56"),
        ("processors", "probabilistic_sampler: {sampling_percentage: many}", at, "must be a number, not text"),
        (
            "processors",
            "probabilistic_sampler: {sampling_percentage: 1, mode: proportionl}",
            mode,
            "unknown `mode` \"proportionl\"",
        ),
        ("processors", "probabilistic_sampler: {sampling_percentage: 1, sampling_precision: 0}", precision, "positive"),
        (
            "processors",
            "probabilistic_sampler: {sampling_percentage: 1, sampling_precision: 15}",
            precision,
            "at most 14",
        ),
        (
            "processors",
            "probabilistic_sampler: {sampling_percentage: 1, hash_seed: -1}",
            "processors::probabilistic_sampler::hash_seed",
            "must not be negative",
        ),
        (
            "processors",
            "probabilistic_sampler: {sampling_percentage: 1, attribute_source: resource}",
            "processors::probabilistic_sampler::attribute_source",
            "unknown `attribute_source` \"resource\"",
        ),
        (
            "",
            "receivers: {otlp: {protocols: {grpc: }}}\nprocessors: {probabilistic_sampler: {sampling_percentage: 1}}\n\
             exporters: {nop: }\nservice: {pipelines: {metrics: {receivers: [otlp], processors: [probabilistic_sampler], \
             exporters: [nop]}}}",
            "service::pipelines::metrics::processors",
            "the processor `probabilistic_sampler` does not support metrics",
        ),
        (
            "",
            "receivers: {opencensus: }\nexporters: {nop: }\n\
             service: {pipelines: {logs: {receivers: [opencensus], exporters: [nop]}}}",
            "service::pipelines::logs::receivers",
            "the receiver `opencensus` does not support logs",
        ),
    ]);
}

#[test]
fn more_decisions_than_fit_into_memory_are_not_remembered() {
    let with = |size: &str| {
        format!(
            "tail_sampling: {{decision_cache: {{sampled_cache_size: {size}}}, policies: [{{name: a, type: always_sample}}]}}"
        )
    };
    let path = "processors::tail_sampling::decision_cache::sampled_cache_size";
    for size in ["100000001", "9223372036854775807"] {
        refused(&[("processors", &with(size), path, "must be at most 100000000")]);
    }
}

#[test]
fn a_sampler_that_drops_everything_is_warned_about() {
    for (settings, words) in [
        ("{}", "without `sampling_percentage` all items are dropped"),
        ("{sampling_percentage: 0.005}", "`mode: hash_seed` drops all items below"),
        ("{sampling_percentage: 5, attribute_source: record}", "has no effect without `from_attribute`"),
        ("{sampling_percentage: 5, attribute_source: record, mode: equalizing}", "`attribute_source` has no effect"),
    ] {
        let text = format!(
            "{RECEIVERS}processors: {{probabilistic_sampler: {settings}}}\n{EXPORTERS}service: {{pipelines: {{traces: \
             {{receivers: [otlp], processors: [probabilistic_sampler], exporters: [nop]}}}}}}"
        );
        let loaded = load(&text, &FixedSources::new()).unwrap();
        assert_eq!(loaded.warnings.len(), 1, "{settings}: {:?}", loaded.warnings);
        assert!(loaded.warnings[0].to_string().contains(words), "{}", loaded.warnings[0]);
    }
}

#[test]
fn a_sampler_by_a_hash_behind_another_one_is_warned_about() {
    let warnings = |first: &str, second: &str| {
        let text = format!(
            "{RECEIVERS}processors:\n  probabilistic_sampler: {{sampling_percentage: 50{first}}}\n  batch:\n  \
             probabilistic_sampler/2: {{sampling_percentage: 20, hash_seed: 7{second}}}\n{EXPORTERS}service: {{pipelines: \
             {{traces: {{receivers: [otlp], processors: [probabilistic_sampler, batch, probabilistic_sampler/2], \
             exporters: [nop]}}}}}}"
        );
        load(&text, &FixedSources::new()).unwrap().warnings
    };
    for (first, second) in [("", ""), (", fail_closed: false", ""), (", mode: proportional", "")] {
        let told = warnings(first, second);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].path, "service::pipelines::traces::processors");
        assert!(told[0].message.contains("`probabilistic_sampler/2` drops all items"), "{}", told[0]);
    }
    for second in [", fail_closed: false", ", mode: proportional", ", mode: equalizing"] {
        assert_eq!(warnings("", second), [], "{second}");
    }
}
