//! Every component, and every setting that is no secret: what is written is read as it was.

use std::collections::BTreeSet;

use crate::{CollectorDocument, ComponentType, FixedSources, load, model};

/// The sections of a document with this component, which is used in a pipeline that it fits in.
struct ComponentCase {
    section: &'static str,
    name: &'static str,
    settings: &'static str,
}

const fn case(section: &'static str, name: &'static str, settings: &'static str) -> ComponentCase {
    ComponentCase { section, name, settings }
}

const CASES: &[ComponentCase] = &[
    case("receivers", "otlp", "{protocols: {grpc: , http: }}"),
    case(
        "receivers",
        "otlp",
        "{protocols: {grpc: {endpoint: ':1', tls: {cert_file: /c, key_file: /k, client_ca_file: /a, min_version: '1.3', \
         reload_interval: 1m}, max_recv_msg_size_mib: 7, max_concurrent_streams: 5, include_metadata: true, keepalive: \
         {server_parameters: {max_connection_idle: 1s, max_connection_age: 2s, max_connection_age_grace: 3s, time: 4s, \
         timeout: 5s}}}, http: {endpoint: 'h:2', cors: {allowed_origins: ['http://*.a'], allowed_headers: [x], \
         exposed_headers: [y], max_age: 9}, max_request_body_size: 77, compression_algorithms: ['', gzip], \
         include_metadata: true, read_header_timeout: 0s, read_timeout: 1s, write_timeout: 0s, idle_timeout: 2s, \
         keep_alives_enabled: false, traces_url_path: /t, metrics_url_path: /m, logs_url_path: /l}}}",
    ),
    case("receivers", "otlp", "{protocols: {http: {compression_algorithms: []}}}"),
    case("receivers", "file_log", "{include: ['/a/*.log'], start_at: beginning, operators: [{type: container}]}"),
    case("receivers", "opencensus", "{}"),
    case("receivers", "opencensus", "{endpoint: ':3', cors_allowed_origins: ['http://a'], max_recv_msg_size_mib: 9}"),
    case("processors", "batch", "{}"),
    case(
        "processors",
        "batch",
        "{timeout: 1s, send_batch_size: 5, send_batch_max_size: 6, metadata_keys: [a, b], metadata_cardinality_limit: 7}",
    ),
    case("processors", "memory_limiter", "{check_interval: 5s, limit_mib: 100}"),
    case("processors", "memory_limiter", "{check_interval: 5s, limit_mib: 100, spike_limit_mib: 30}"),
    case("processors", "memory_limiter", "{check_interval: 5s, limit_percentage: 75, spike_limit_percentage: 16}"),
    case(
        "processors",
        "filter",
        "{spans: {include: {match_type: strict, services: [b, a], span_kinds: [SPAN_KIND_SERVER, SPAN_KIND_CLIENT], status_codes: \
         [ERROR], attributes: [{key: k, value: 1}, {key: l}, {key: m, value: text}, {key: n, value: true}, {key: o, \
         value: 1.5}], resources: [{key: r, value: v}], libraries: [{name: n, version: '1'}, {name: m}]}, exclude: \
         [{match_type: regexp, span_names: ['^a$$']}, {attributes: [{key: x}]}]}}",
    ),
    case(
        "processors",
        "filter",
        "{logs: {include: {match_type: regexp, bodies: [a], severity_texts: [b], severity_number: {min: WARN2, \
         match_undefined: true}, record_attributes: [{key: k, value: v}], resource_attributes: [{key: r}]}, exclude: \
         {severity_number: {min: 5}}}, metrics: {include: [{match_type: strict, metric_names: [a], resource_attributes: \
         [{key: r, value: v}]}], exclude: {match_type: strict, metric_names: [b], resource_attributes: [{key: s, \
         value: w}]}}}",
    ),
    case(
        "processors",
        "attributes",
        "{include: {match_type: strict, log_bodies: [x]}, exclude: {match_type: regexp, \
         log_severity_texts: [y], log_severity_number: {min: 9}}, actions: [{key: a, action: insert, value: [1, 'two', \
         {three: 3.5}]}, {key: b, action: UPDATE, from_attribute: a, default_value: ''}, {key: c, action: upsert, \
         from_context: metadata.X-Tenant}, {key: d, action: upsert, from_context: client.address}, {key: e, action: \
         upsert, from_context: auth.subject}, {key: f, action: delete, pattern: '^p'}, {action: hash, pattern: q}, {key: \
         g, action: extract, pattern: '(?P<one>.*)'}, {key: h, action: convert, converted_type: int}, {key: i, action: \
         rename, from_attribute: j}, {key: k, action: insert, default_value: x}]}",
    ),
    case("processors", "resource", "{attributes: [{key: a, action: insert, value: '8080'}, {key: b, action: delete}]}"),
    case(
        "processors",
        "redaction",
        "{allow_all_keys: true, allowed_keys: [b, a], ignored_keys: [c], ignored_key_patterns: ['^d'], \
         blocked_key_patterns: [e], blocked_values: ['4[0-9]{12}'], allowed_values: [f], redact_all_types: true, \
         hash_function: SHA3, summary: debug}",
    ),
    case("processors", "probabilistic_sampler", "{sampling_percentage: 0.1}"),
    case(
        "processors",
        "probabilistic_sampler",
        "{sampling_percentage: 15.3, mode: equalizing, hash_seed: 22, fail_closed: false, sampling_precision: 6}",
    ),
    case(
        "processors",
        "probabilistic_sampler",
        "{sampling_percentage: 1, attribute_source: record, from_attribute: a, sampling_priority: b}",
    ),
    case(
        "processors",
        "tail_sampling",
        "{decision_wait: 5s, decision_wait_after_root_received: 1s, num_traces: 7, block_on_overflow: true, \
         decision_cache: {sampled_cache_size: 1, non_sampled_cache_size: 2}, sample_on_first_match: true, \
         drop_pending_traces_on_shutdown: true, maximum_trace_size_bytes: 3, num_shards: 4, record_policy: true, \
         late_error_wait: 6s, overload_sampling_percentage: 7.5, policies: [{name: a, type: always_sample}, {name: b, \
         type: latency, latency: {threshold_ms: 5, upper_threshold_ms: 9}}, {name: c, type: numeric_attribute, \
         numeric_attribute: {key: k, min_value: -5, invert_match: true}}, {name: d, type: probabilistic, probabilistic: \
         {sampling_percentage: 10}}, {name: e, type: status_code, status_code: {status_codes: [ERROR, UNSET]}}, {name: \
         f, type: string_attribute, string_attribute: {key: k, values: ['a+'], enabled_regex_matching: true}}, {name: g, \
         type: string_attribute, string_attribute: {key: k, values: [b, a]}}, {name: h, type: rate_limiting, \
         rate_limiting: {spans_per_second: 5}}, {name: i, type: bytes_limiting, bytes_limiting: {bytes_per_second: 5, \
         burst_capacity: 7}}, {name: j, type: span_count, span_count: {min_spans: 2, max_spans: 5}}, {name: k, type: \
         trace_state, trace_state: {key: k, values: [v]}}, {name: l, type: trace_flags}, {name: m, type: \
         boolean_attribute, boolean_attribute: {key: k, value: true, invert_match: true}}, {name: n, type: and, and: \
         {and_sub_policy: [{name: x, type: always_sample}, {name: y, type: not, not: {not_sub_policy: {name: z, type: \
         always_sample}}}]}}, {name: o, type: drop, drop: {drop_sub_policy: [{name: x, type: trace_flags}]}}, {name: p, \
         type: composite, composite: {max_total_spans_per_second: 99, composite_sub_policy: [{name: x, type: \
         always_sample}, {name: y, type: trace_flags}, {name: z, type: trace_flags}], rate_allocation: [{policy: x, \
         percent: 33}, {policy: y}]}}]}",
    ),
    case("processors", "tail_sampling", "{sampling_strategy: span-ingest, policies: [{name: a, type: always_sample}]}"),
    case("processors", "k8s_attributes", "{}"),
    case(
        "processors",
        "k8s_attributes",
        "{auth_type: kubeConfig, kube_config_path: /k, context: c, extract: {metadata: [k8s.pod.name], labels: \
         [{tag_name: t, key: k, from: namespace}, {key_regex: 'app/(.+)', tag_name: $$1}], annotations: [{key: a}], \
         otel_annotations: true, deployment_name_from_replicaset: false}, filter: {node: n, namespace: ns, fields: \
         [{key: a, value: b}, {key: c, value: d, op: not-equals}], labels: [{key: e, op: exists}, {key: f, op: \
         does-not-exist}]}, pod_association: [{sources: [{from: connection}, {from: resource_attribute, name: x}]}], \
         exclude: {pods: [{name: noise}]}, wait_for_metadata: true, wait_for_metadata_timeout: 3s, \
         pod_delete_grace_period: 5s, verify_senders: {trusted_relays: [{namespace: a, service_account: b}]}}",
    ),
    case("processors", "k8s_attributes", "{auth_type: none, passthrough: true, exclude: {}, extract: {metadata: []}}"),
    case(
        "exporters",
        "elasticsearch",
        "{endpoints: ['http://a:9200', 'http://b/x'], logs_index: 'a-%{b}', traces_index: 't%%', logstash_format: \
         {enabled: true, prefix_separator: _, date_format: '%Y-%m'}, dataset: '%{d}', namespace: n, \
         allow_record_attributes: [b], max_indices: 7, require_data_stream: false, pipeline: p, mapping: {mode: ecs, \
         dedot: all_keys}, document_ids: uid, flush: {bytes: 1000}, timeout: 7s, compression: zstd}",
    ),
    case("exporters", "elasticsearch", "{endpoint: 'http://a', mapping: {mode: raw, dedot: true}}"),
    case(
        "exporters",
        "opensearch",
        "{http: {endpoint: 'http://a', compression: none, tls: {ca_file: /a}}, logs_index: 'a-%{b}', \
         logs_index_fallback: c, logs_index_time_format: yyyy, traces_index: t, bulk_action: index, mapping: {mode: \
         raw}, timeout: 7s, sending_queue: {enabled: false}}",
    ),
    case("exporters", "nop", "{}"),
    case("exporters", "debug", "{verbosity: json, sampling_initial: 7, sampling_thereafter: 0}"),
    case("exporters", "file", "{path: /f}"),
    case(
        "exporters",
        "file",
        "{path: '/d/*.json', rotation: {max_megabytes: 1, max_days: 2, max_backups: 3, localtime: true}, format: proto, \
         flush_interval: 2s, compression: zstd, create_directory: true, directory_permissions: '0700', group_by: \
         {enabled: true, resource_attribute: a, max_open_files: 5}}",
    ),
    case("exporters", "file", "{path: /f, append: true}"),
    case("exporters", "otlp_grpc", "{endpoint: 'http://backend:4317'}"),
    case(
        "exporters",
        "otlp_grpc",
        "{endpoint: 'backend:4317', tls: {insecure_skip_verify: true, ca_file: /a, include_system_ca_certs_pool: true, \
         cert_file: /c, key_file: /k, server_name_override: s, min_version: '1.3'}, compression: zstd, authority: a, \
         keepalive: {time: 20s, timeout: 2s, permit_without_stream: true}, timeout: 0s, retry_on_failure: \
         {initial_interval: 1s, randomization_factor: 0.1, multiplier: 2, max_interval: 3s, max_elapsed_time: 0s}, \
         sending_queue: {num_consumers: 2, queue_size: 30, sizer: items, block_on_overflow: true, wait_for_result: true, \
         batch: {flush_timeout: 1s, min_size: 5, max_size: 6}}}",
    ),
    case(
        "exporters",
        "otlp_grpc",
        "{endpoint: 'b:1', retry_on_failure: {enabled: false}, sending_queue: {sizer: bytes, batch: {sizer: items}}}",
    ),
    case("exporters", "otlp_grpc", "{endpoint: 'b:1', compression: none, sending_queue: {batch: {}}}"),
    case("exporters", "otlp_grpc", "{endpoint: 'b:1', sending_queue: {enabled: false}}"),
    case(
        "exporters",
        "otlp_http",
        "{endpoint: 'https://backend/base', encoding: json, compression: none, timeout: 1s}",
    ),
    case("exporters", "otlp_http", "{traces_endpoint: 'http://a/t?x=1', logs_endpoint: 'http://b'}"),
    case("exporters", "load_balancing", "{protocol: {otlp: }, resolver: {static: {hostnames: [b, 'a:1']}}}"),
    case(
        "exporters",
        "load_balancing",
        "{protocol: {otlp: {tls: {insecure: true}, timeout: 1s}}, resolver: {dns: {hostname: h, port: '99', interval: \
         1s, timeout: 2s}}, routing_key: attributes, routing_attributes: [a, b], timeout: 3s, retry_on_failure: {}, \
         sending_queue: {queue_size: 5}}",
    ),
    case(
        "exporters",
        "load_balancing",
        "{protocol: {otlp: }, resolver: {k8s: {service: a.b, ports: [1, 2], timeout: 5s, return_hostnames: true}}, \
         routing_key: traceID, retry_on_failure: {max_elapsed_time: 45s}}",
    ),
    case("connectors", "forward", "{}"),
    case("extensions", "health_check", "{}"),
    case("exporters", "http", "{endpoint: 'http://l'}"),
    case(
        "exporters",
        "http",
        "{endpoint: 'https://l/x?y=1', method: put, format: json_lines, date_key: '', date_format: double, body_key: b, \
         merge_attributes: false, dedot: nested, max_request_size: 9, compression: none, headers: []}",
    ),
    case("exporters", "loki", "{endpoint: 'http://l'}"),
    case(
        "exporters",
        "loki",
        "{endpoint: 'http://l/loki/api/v1/push', tenant: '%{a:-b}-%{+yyyy.MM}', labels: {x: '50%% %{c}'}, \
         allow_record_attributes: [a], structured_metadata: {max_entries: 5, max_size: 6}, max_streams: 7, \
         max_tenants: 8, max_line_size: 9, max_line_behavior: drop, max_request_size: 10, timeout: 1s}",
    ),
    case("exporters", "loki", "{endpoint: 'http://l', labels: {}, structured_metadata: {enabled: false}}"),
    case(
        "extensions",
        "health_check",
        "{endpoint: ':1', path: /h, tls: {cert_file: /c, key_file: /k}, check_collector_pipeline: {interval: 1m, \
         exporter_failure_threshold: 9}, response_body: {healthy: good, unhealthy: bad}}",
    ),
    case("extensions", "file_storage", "{}"),
    case("extensions", "file_storage", "{directory: /s, create_directory: true, directory_permissions: '0700'}"),
    case("extensions", "basicauth", "{htpasswd: {file: /f}}"),
    case("extensions", "basicauth", "{client_auth: {username: u, password_file: /p}}"),
    case("extensions", "bearertokenauth", "{filename: /f, header: X-Token, scheme: ''}"),
    case(
        "extensions",
        "oauth2client",
        "{client_id_file: /i, client_secret_file: /s, token_url: 'https://t', scopes: ['a,b'], endpoint_params: {x: \
         [a, b], y: c}, timeout: 1s, expiry_buffer: 2s, tls: {insecure: true}}",
    ),
];

const TELEMETRY: &[&str] = &[
    "{}",
    "{logs: {level: error, encoding: json}, metrics: {level: detailed, readers: [{pull: {exporter: {prometheus: {host: \
     '::1', port: 9}}}}]}, resource: {attributes: [{name: a, value: b}, {name: attributes, value: '5'}], x: y}}",
    "{metrics: {level: none}}",
    "{metrics: {address: ':7'}}",
    "{metrics: {readers: [{pull: {exporter: {prometheus: {host: h, port: 0}}}}]}}",
    "{metrics: {readers: [{}]}}",
];

impl ComponentCase {
    /// A document that uses the component for the signals that it supports.
    fn document(&self, signal: &str) -> String {
        let Self { section, name, settings } = self;
        let mut receivers = String::from("otlp/plain: {protocols: {grpc: {endpoint: ':9'}}}");
        let mut exporters = String::from("nop/plain: ");
        let (mut processors, mut connectors, mut extensions) = (String::new(), String::new(), String::new());
        let (mut from, mut through, mut to) = ("otlp/plain".to_owned(), String::new(), "nop/plain".to_owned());
        let id = format!("{name}/x");
        let one = format!("{id}: {settings}");
        match *section {
            "receivers" => (receivers, from) = (one, id),
            "processors" => (processors, through) = (one, id),
            "exporters" => (exporters, to) = (one, id),
            "connectors" => (connectors, to) = (one, format!("nop/plain, {id}")),
            _ => extensions = one,
        }
        let used = if extensions.is_empty() { String::new() } else { format!("{name}/x") };
        let behind = match connectors.is_empty() {
            true => String::new(),
            false => format!(", {signal}/behind: {{receivers: [{name}/x], exporters: [nop/plain]}}"),
        };
        format!(
            "{{receivers: {{{receivers}}}, processors: {{{processors}}}, exporters: {{{exporters}}}, connectors: \
             {{{connectors}}}, extensions: {{{extensions}}}, service: {{extensions: [{used}], pipelines: {{{signal}: \
             {{receivers: [{from}], processors: [{through}], exporters: [{to}]}}{behind}}}}}}}"
        )
    }
}

/// Loads a text, writes the document and loads it again.
fn assert_round_trip(text: &str) -> CollectorDocument {
    let read = |text: &str| load(text, &FixedSources::new()).unwrap_or_else(|error| panic!("{error}\n{text}")).document;
    let document = read(text);
    let written = document.to_yaml().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(read(&written), document, "{text}\n{written}");
    document
}

#[test]
fn settings_of_every_component_are_written_as_they_are_read() {
    for case in CASES {
        let fits = |signal: &&&str| load(&case.document(signal), &FixedSources::new()).is_ok();
        let signal = ["traces", "logs", "metrics"].iter().find(fits).copied().unwrap_or("traces");
        assert_round_trip(&case.document(signal));
    }
}

#[test]
fn every_component_has_a_case() {
    let kinds: [(&str, &[ComponentType]); 5] = [
        ("receivers", model::ReceiverConfig::TYPES),
        ("processors", model::ProcessorConfig::TYPES),
        ("exporters", model::ExporterConfig::TYPES),
        ("connectors", model::ConnectorConfig::TYPES),
        ("extensions", model::ExtensionConfig::TYPES),
    ];
    let known: BTreeSet<(&str, &str)> = CASES.iter().map(|case| (case.section, case.name)).collect();
    for (section, kinds) in kinds {
        for kind in kinds {
            let has_case = kind.names.iter().any(|name| known.contains(&(section, name)));
            assert!(has_case, "add a case for {section}::{} to this test", kind.name());
        }
    }
}

#[test]
fn telemetry_is_written_as_it_is_read() {
    for telemetry in TELEMETRY {
        assert_round_trip(&format!(
            "{{receivers: {{otlp: {{protocols: {{grpc: }}}}}}, exporters: {{nop: }}, service: {{telemetry: \
             {telemetry}, pipelines: {{traces: {{receivers: [otlp], exporters: [nop], uid: u, carries: [a, b]}}}}}}}}"
        ));
    }
}
