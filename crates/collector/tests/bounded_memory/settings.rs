//! Each component of this build, set up so that it allocates as much as it can.

use kubewake_collector::components;
use kubewake_config::{
    FixedSources, load,
    model::{Document, Exporter, Processor},
};

/// The names of all components of a kind, without the older ones.
fn listed(kind: &str) -> Vec<String> {
    let listing = components::listing();
    let line = listing.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
    line.split(", ").map(|name| name.split(' ').next().unwrap().to_owned()).collect()
}

/// The worst settings of a processor. One that is added to the table needs some here.
fn of_processor(name: &str) -> &'static [&'static str] {
    match name {
        "batch" => &[
            "{send_batch_size: 0, timeout: 1s}",
            "{send_batch_size: 1, send_batch_max_size: 1, timeout: 1s}",
            "{send_batch_size: 7, send_batch_max_size: 7, timeout: 1s}",
        ],
        "memory_limiter" => &["{check_interval: 1s, limit_mib: 64}"],
        "filter" => &["{spans: {exclude: {match_type: strict, span_names: [x]}}, \
              logs: {exclude: {match_type: strict, severity_texts: [x]}}, \
              metrics: {exclude: {match_type: strict, metric_names: [x]}}}"],
        "attributes" => &[
            "{actions: [{key: environment, value: production, action: upsert}, {key: key, action: hash}]}",
            "{actions: [{pattern: '.*', action: delete}]}",
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
        "k8s_attributes" => &["{passthrough: true}"],
        added => panic!("what are the worst settings of the processor {added}? They are to be measured, too"),
    }
}

/// The worst settings of an exporter. `GRPC` and `HTTP` are addresses that take everything, `DIR` is an empty directory.
fn of_exporter(name: &str) -> &'static [&'static str] {
    match name {
        "otlp" => &[
            "{endpoint: GRPC, tls: {insecure: true}, compression: none}",
            "{endpoint: GRPC, tls: {insecure: true}, compression: gzip}",
            "{endpoint: GRPC, tls: {insecure: true}, compression: snappy, \
              sending_queue: {batch: {flush_timeout: 1s, min_size: 1000, max_size: 1000, sizer: items}}}",
        ],
        "otlphttp" => &[
            "{endpoint: 'http://HTTP', compression: snappy}",
            "{endpoint: 'http://HTTP', encoding: json, compression: none}",
            "{endpoint: 'http://HTTP', encoding: json, compression: lz4, \
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
            "{protocol: {otlp: {tls: {insecure: true}, compression: none}}, resolver: {static: {hostnames: [GRPC, OTHER]}}}",
            "{protocol: {otlp: {tls: {insecure: true}, compression: none}}, resolver: {static: {hostnames: [GRPC, OTHER]}}, \
              routing_key: attributes, routing_attributes: [key]}",
        ],
        added => panic!("what are the worst settings of the exporter {added}? They are to be measured, too"),
    }
}

fn parse(processors: &str, exporters: &str, signal: &str) -> Document {
    let id = |component: &str| component.split(':').next().unwrap().to_owned();
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nprocessors:\n  {processors}\nexporters:\n  {exporters}\n\
         service: {{pipelines: {{{signal}: {{receivers: [otlp], processors: [{}], exporters: [{}]}}}}}}",
        id(processors),
        id(exporters)
    );
    load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}")).document
}

/// All processors, each with how it is set.
pub fn processors() -> Vec<(String, Processor)> {
    let mut all = Vec::new();
    for name in listed("processors: ") {
        for settings in of_processor(&name) {
            let text = format!("{name}: {settings}");
            let document = parse(&text, "nop: {}", "traces");
            all.push((text, document.processors.into_values().next().unwrap()));
        }
    }
    all
}

/// All exporters, each with how it is set. `replace` are words in the settings with what they stand for.
pub fn exporters(replace: &[(&str, String)]) -> Vec<(String, Exporter)> {
    let mut all = Vec::new();
    for name in listed("exporters: ") {
        for settings in of_exporter(&name) {
            let with = |text: String, (word, value): &(&str, String)| text.replace(word, value);
            let text = replace.iter().fold(format!("{name}: {settings}"), with);
            let document = parse("memory_limiter: {check_interval: 1s, limit_mib: 64}", &text, "traces");
            all.push((text, document.exporters.into_values().next().unwrap()));
        }
    }
    all
}
