//! Settings for each component of this build, with which it allocates as much as it can.

use kubewake_collector::components;
use kubewake_config::{
    FixedSources, load,
    model::{CollectorDocument, ExporterConfig, ProcessorConfig, ReceiverConfig},
};

/// The names of all components of a kind, without their older names.
pub fn listed(kind: &str) -> Vec<String> {
    let listing = components::list_components();
    let line = listing.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
    line.split(", ").map(|name| name.split(' ').next().unwrap().to_owned()).collect()
}

/// Settings of `k8s_attributes` with a cluster, whose kubeconfig is at `KUBECONFIG`. They add all known
/// metadata to each resource.
const OF_CLUSTER: &str = "{auth_type: kubeConfig, kube_config_path: KUBECONFIG, wait_for_metadata: true, \
    wait_for_metadata_timeout: 1h, \
    extract: {metadata: [k8s.pod.name, k8s.pod.uid, k8s.pod.ip, k8s.namespace.name, k8s.deployment.name, k8s.node.name, k8s.node.uid, \
      k8s.cluster.uid, k8s.container.name, container.id, container.image.name, container.image.tag], \
      annotations: [{tag_name: $$1, key_regex: (.*), from: pod}, {tag_name: $$1, key_regex: (.*), from: namespace}], \
      labels: [{tag_name: $$1, key_regex: (.*), from: pod}, {tag_name: $$1, key_regex: (.*), from: node}]}}";

/// The worst settings of a processor. One that is added to the table needs settings here.
fn of_processor(name: &str) -> &'static [&'static str] {
    match name {
        "batch" => &[
            "{send_batch_size: 0, timeout: 1s}",
            "{send_batch_size: 1, send_batch_max_size: 1, timeout: 1s}",
            "{send_batch_size: 7, send_batch_max_size: 7, timeout: 1s}",
            "{send_batch_size: 0, timeout: 1s, metadata_keys: [x-metadata], metadata_cardinality_limit: 0}",
        ],
        "memory_limiter" => &["{check_interval: 1s, limit_mib: 64}"],
        "filter" => &["{spans: {exclude: {match_type: strict, span_names: [x]}}, \
              logs: {exclude: {match_type: strict, severity_texts: [x]}}, \
              metrics: {exclude: {match_type: strict, metric_names: [x]}}}"],
        "attributes" => &[
            "{actions: [{key: environment, value: production, action: upsert}, {key: key, action: hash}]}",
            "{actions: [{pattern: '.*', action: delete}]}",
            "{actions: [{key: metadata, from_context: metadata.x-metadata, action: upsert}]}",
        ],
        "resource" => &["{attributes: [{key: environment, value: production, action: upsert}]}"],
        "redaction" => &[
            "{allow_all_keys: true, blocked_values: ['k', '^$'], blocked_key_patterns: [k], redact_all_types: true, \
              hash_function: sha3, summary: debug}",
            "{allowed_keys: [none], summary: debug}",
        ],
        "probabilistic_sampler" => &["{sampling_percentage: 50, mode: proportional, fail_closed: false}"],
        "tail_sampling" => &[
            "{decision_wait: 1s, num_traces: 1000, num_shards: 1, policies: [{name: all, type: always_sample}]}",
            "{decision_wait: 1s, num_shards: 1, record_policy: true, policies: [{name: some, type: probabilistic, \
              probabilistic: {sampling_percentage: 50}}]}",
        ],
        "k8s_attributes" => &["{passthrough: true}", OF_CLUSTER],
        added => panic!("what are the worst settings of the processor {added}? They are to be measured, too"),
    }
}

/// The worst settings of an exporter. `GRPC`, `OTHER` and `HTTP` are addresses of destinations, `NOBODY` is an
/// address without a listener, and `DIR` is an empty directory.
fn of_exporter(name: &str) -> &'static [&'static str] {
    match name {
        "otlp" => &[
            "{endpoint: GRPC, tls: {insecure: true}, compression: none, RETRY}",
            "{endpoint: GRPC, tls: {insecure: true}, compression: gzip, RETRY}",
            "{endpoint: GRPC, tls: {insecure: true}, compression: snappy, RETRY, \
              sending_queue: {batch: {flush_timeout: 1s, min_size: 1000, max_size: 1000, sizer: items}}}",
        ],
        "otlphttp" => &[
            "{endpoint: 'http://HTTP', compression: snappy, RETRY}",
            "{endpoint: 'http://HTTP', encoding: json, compression: none, RETRY}",
            "{endpoint: 'http://HTTP', encoding: json, compression: lz4, RETRY, \
              sending_queue: {batch: {flush_timeout: 1s, min_size: 100000, sizer: items}}}",
        ],
        "debug" => &["{verbosity: basic}", "{verbosity: normal}", "{verbosity: detailed}", "{verbosity: json}"],
        "file" => &[
            "{path: DIR/json, format: json}",
            "{path: DIR/proto, format: proto, compression: zstd}",
            "{path: DIR/zstd, format: json, compression: zstd}",
            "{path: 'DIR/groups/*', group_by: {enabled: true, resource_attribute: service.name}}",
        ],
        "nop" => &["{}"],
        "load_balancing" => &[
            "{PEER, resolver: {static: {hostnames: [GRPC, OTHER]}}, RETRY}",
            "{PEER, resolver: {static: {hostnames: [GRPC, OTHER, NOBODY]}}, RETRY, routing_key: attributes, routing_attributes: [key]}",
        ],
        "elasticsearch" => &[
            "{endpoint: 'http://HTTP', compression: none, RETRY}",
            "{endpoint: 'http://HTTP', compression: none, mapping: {mode: ecs}, flush: {bytes: 400000}, RETRY, \
              traces_index: 'a-%{service.name}', logs_index: 'a-%{service.name}'}",
        ],
        "opensearch" => &["{http: {endpoint: 'http://HTTP', compression: none}, RETRY}"],
        "http" => &[
            "{endpoint: 'http://HTTP/x', compression: none, dedot: nested, RETRY}",
            "{endpoint: 'http://HTTP/x', format: json_lines, merge_attributes: false, max_request_size: 10000, RETRY}",
        ],
        "loki" => &[
            "{endpoint: 'http://HTTP', RETRY}",
            "{endpoint: 'http://HTTP', tenant: '%{service.name:-none}', labels: {name: '%{service.name}'}, \
              max_request_size: 10000, max_line_size: 10, RETRY}",
            "{endpoint: 'http://HTTP', labels: {key: '%{key}'}, allow_record_attributes: [key], \
              structured_metadata: {enabled: false}, max_line_behavior: drop, RETRY}",
        ],
        added => panic!("what are the worst settings of the exporter {added}? They are to be measured, too"),
    }
}

fn parse(processors: &str, exporters: &str, signal: &str) -> CollectorDocument {
    let id = |component: &str| component.split(':').next().unwrap().to_owned();
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nprocessors:\n  {processors}\nexporters:\n  {exporters}\n\
         service: {{pipelines: {{{signal}: {{receivers: [otlp], processors: [{}], exporters: [{}]}}}}}}",
        id(processors),
        id(exporters)
    );
    load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}")).document
}

/// A receiver of this name on free ports, with this maximum size of a message. One that is added to the table
/// needs settings here.
pub fn receiver(name: &str, max_bytes: usize) -> ReceiverConfig {
    let mib = max_bytes >> 20;
    let grpc = format!("endpoint: '127.0.0.1:0', max_recv_msg_size_mib: {mib}, include_metadata: true");
    let settings = match name {
        "otlp" => {
            let http = format!("endpoint: '127.0.0.1:0', max_request_body_size: {max_bytes}, include_metadata: true");
            format!("{{protocols: {{grpc: {{{grpc}}}, http: {{{http}}}}}}}")
        }
        "opencensus" => format!("{{{grpc}}}"),
        added => panic!("what are the worst settings of the receiver {added}? They are to be measured, too"),
    };
    let text = format!(
        "receivers: {{{name}: {settings}}}\nexporters: {{nop: }}\n\
         service: {{pipelines: {{traces: {{receivers: [{name}], exporters: [nop]}}}}}}"
    );
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    loaded.document.receivers.into_values().next().unwrap()
}

/// All processors with their settings.
pub fn processors(kubeconfig: &str) -> Vec<(String, ProcessorConfig)> {
    let mut all = Vec::new();
    for name in listed("processors: ") {
        for settings in of_processor(&name) {
            let text = format!("{name}: {}", settings.replace("KUBECONFIG", kubeconfig));
            let document = parse(&text, "nop: {}", "traces");
            all.push((text, document.processors.into_values().next().unwrap()));
        }
    }
    all
}

/// Retries that come at once, and end soon.
const RETRY: &str = "retry_on_failure: {initial_interval: 1ms, max_interval: 1ms, multiplier: 1, randomization_factor: 0, max_elapsed_time: 2s}";

const PEER: &str = "protocol: {otlp: {tls: {insecure: true}, compression: none, RETRY}}";

/// Whether it has a destination that may refuse. A new exporter must be added here to compile.
pub fn has_destination(settings: &ExporterConfig) -> bool {
    match settings {
        ExporterConfig::OtlpGrpc(_)
        | ExporterConfig::OtlpHttp(_)
        | ExporterConfig::LoadBalancing(_)
        | ExporterConfig::Elasticsearch(_)
        | ExporterConfig::Opensearch(_)
        | ExporterConfig::Loki(_)
        | ExporterConfig::Http(_) => true,
        ExporterConfig::Debug(_) | ExporterConfig::File(_) | ExporterConfig::Nop(_) => false,
    }
}

/// The name of a signal that the exporter takes.
fn a_signal_of(exporter: &str) -> &'static str {
    if matches!(exporter, "loki" | "http") { "logs" } else { "traces" }
}

/// All exporters with their settings. `replace` are words in the settings and their values.
pub fn exporters(replace: &[(&str, String)]) -> Vec<(String, ExporterConfig)> {
    let mut all = Vec::new();
    for name in listed("exporters: ") {
        for settings in of_exporter(&name) {
            let with = |text: String, (word, value): &(&str, String)| text.replace(word, value);
            let settings = settings.replace("PEER", PEER).replace("RETRY", RETRY);
            let text = replace.iter().fold(format!("{name}: {settings}"), with);
            let document = parse("memory_limiter: {check_interval: 1s, limit_mib: 64}", &text, a_signal_of(&name));
            all.push((text, document.exporters.into_values().next().unwrap()));
        }
    }
    all
}
