//! Comparison with the recorded behavior of the OpenTelemetry Collector 0.155: the same documents are accepted
//! and refused, and messages name what is wrong. An address that cannot be bound is refused by `validate` here,
//! and only at the start there.

#![allow(clippy::unwrap_used, clippy::panic)]

use kubewake_config::{FixedSources, load};

/// A document and its expected result.
struct Case {
    name: &'static str,
    /// `<receivers>`, `<exporters>` and `<service>` stand for the sections below.
    config: &'static str,
    env: &'static [(&'static str, &'static str)],
    valid: bool,
    /// Words that the message must hold.
    mentions: &'static [&'static str],
}

const RECEIVERS: &str = "receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:24317}";

const EXPORTERS: &str = "exporters:
  otlp: {endpoint: 127.0.0.1:25317, tls: {insecure: true}}";

const SERVICE: &str = "service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp]}";

#[test]
fn every_document_comes_out_as_in_the_collector() {
    let mut differing = Vec::new();
    for case in CASES {
        let text = case
            .config
            .replace("<receivers>", RECEIVERS)
            .replace("<exporters>", EXPORTERS)
            .replace("<service>", SERVICE);
        let sources =
            case.env.iter().fold(FixedSources::new(), |sources, (name, value)| sources.with_env(*name, *value));
        match load(&text, &sources) {
            Ok(_) if case.valid => {}
            Ok(_) => differing.push(format!("{}: taken, but must be refused", case.name)),
            Err(errors) if case.valid => differing.push(format!("{}: refused, but must be taken\n{errors}", case.name)),
            Err(errors) => {
                let message = errors.to_string();
                let missing: Vec<_> = case.mentions.iter().filter(|word| !message.contains(**word)).collect();
                if !missing.is_empty() {
                    differing.push(format!("{}: the message lacks {missing:?}\n{message}", case.name));
                }
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case {
        name: "valid",
        config: "
<receivers>
<exporters>
<service>
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "empty-file",
        config: "",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "only-comment",
        config: "
# nothing
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "yaml-syntax",
        config: "
receivers: {otlp: [}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "yaml-tab",
        config: "receivers:\n\totlp:\n",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "duplicate-key",
        config: "
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:24317}
    protocols: {}
exporters:
  otlp: {endpoint: 127.0.0.1:25317, tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["protocols"],
    },
    Case {
        name: "duplicate-top",
        config: "
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:24317}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: 127.0.0.1:24317}
exporters:
  otlp: {endpoint: 127.0.0.1:25317, tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["receivers"],
    },
    Case {
        name: "unknown-receiver",
        config: "
<receivers>
  kafkaesque: {}
<exporters>
<service>
",
        env: &[],
        valid: false,
        mentions: &["kafkaesque"],
    },
    Case {
        name: "unknown-processor",
        config: "
<receivers>
processors:
  frobnicate: {}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [frobnicate], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["frobnicate"],
    },
    Case {
        name: "unknown-exporter",
        config: "
<receivers>
<exporters>
  stdout9: {}
<service>
",
        env: &[],
        valid: false,
        mentions: &["stdout9"],
    },
    Case {
        name: "unknown-extension",
        config: "
<receivers>
<exporters>
extensions:
  magic: {}
<service>
",
        env: &[],
        valid: false,
        mentions: &["magic"],
    },
    Case {
        name: "unknown-field-exporter",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    foo: 1
<service>
",
        env: &[],
        valid: false,
        mentions: &["foo"],
    },
    Case {
        name: "unknown-two-fields",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    foo: 1
    bar: 2
<service>
",
        env: &[],
        valid: false,
        mentions: &["foo", "bar"],
    },
    Case {
        name: "unknown-field-nested",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    sending_queue: {depth: 5}
<service>
",
        env: &[],
        valid: false,
        mentions: &["depth", "sending_queue"],
    },
    Case {
        name: "unknown-field-unused",
        config: "
<receivers>
<exporters>
  otlp/two: {endpoint: 127.0.0.1:1, foo: 1}
<service>
",
        env: &[],
        valid: false,
        mentions: &["foo"],
    },
    Case {
        name: "unused-invalid",
        config: "
<receivers>
<exporters>
  otlp/two: {}
<service>
",
        env: &[],
        valid: false,
        mentions: &["otlp/two"],
    },
    Case {
        name: "dangling-receiver",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp, otlp/two], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["otlp/two"],
    },
    Case {
        name: "dangling-processor",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["batch"],
    },
    Case {
        name: "dangling-exporter",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
",
        env: &[],
        valid: false,
        mentions: &["debug"],
    },
    Case {
        name: "no-receivers",
        config: "
<exporters>
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "no-exporters",
        config: "
<receivers>
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "no-service",
        config: "
<receivers>
<exporters>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "no-pipelines",
        config: "
<receivers>
<exporters>
service: {}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "pipeline-no-receiver",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["traces"],
    },
    Case {
        name: "pipeline-no-exporter",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: []}
",
        env: &[],
        valid: false,
        mentions: &["traces"],
    },
    Case {
        name: "pipeline-null",
        config: "
<receivers>
<exporters>
service: {pipelines: {traces: }}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "pipeline-unknown-signal",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    spans: {receivers: [otlp], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["spans"],
    },
    Case {
        name: "pipeline-same-processor-twice",
        config: "
<receivers>
processors:
  batch: {}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [batch, batch], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["batch"],
    },
    Case {
        name: "pipeline-same-receiver-twice",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp, otlp], exporters: [otlp]}
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "pipeline-string-for-list",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: otlp, exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "component-id-space",
        config: "
<receivers>
<exporters>
  'otlp/a b': {endpoint: 127.0.0.1:1}
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "component-null",
        config: "
<receivers>
exporters:
  otlp:
<service>
",
        env: &[],
        valid: false,
        mentions: &["endpoint"],
    },
    Case {
        name: "receiver-null",
        config: "
receivers:
  otlp:
<exporters>
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "receiver-no-protocol",
        config: "
receivers:
  otlp: {protocols: {}}
<exporters>
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "receiver-bad-endpoint",
        config: "
receivers:
  otlp: {protocols: {grpc: {endpoint: localhost}}}
<exporters>
<service>
",
        env: &[],
        // The Collector's `validate` accepts it, but the Collector exits when it cannot listen there.
        valid: false,
        mentions: &["missing port in address"],
    },
    Case {
        name: "receiver-port-number",
        config: "
receivers:
  otlp: {protocols: {grpc: {endpoint: 24317}}}
<exporters>
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "receiver-same-port",
        config: "
receivers:
  otlp: {protocols: {grpc: {endpoint: '127.0.0.1:24317'}, http: {endpoint: '127.0.0.1:24317'}}}
<exporters>
<service>
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "exporter-no-endpoint",
        config: "
<receivers>
exporters:
  otlp:
    tls: {insecure: true}
<service>
",
        env: &[],
        valid: false,
        mentions: &["endpoint"],
    },
    Case {
        name: "exporter-empty-endpoint",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: ''
<service>
",
        env: &[],
        valid: false,
        mentions: &["endpoint"],
    },
    Case {
        name: "exporter-endpoint-bad-port",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: localhost:http9
<service>
",
        env: &[],
        valid: false,
        mentions: &["http9"],
    },
    Case {
        name: "exporter-http-no-endpoint",
        config: "
<receivers>
exporters:
  otlphttp:
    compression: none
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlphttp]}
",
        env: &[],
        valid: false,
        mentions: &["endpoint"],
    },
    Case {
        name: "exporter-http-bad-url",
        config: "
<receivers>
exporters:
  otlphttp:
    endpoint: 127.0.0.1:25317
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlphttp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "exporter-http-bad-encoding",
        config: "
<receivers>
exporters:
  otlphttp:
    endpoint: http://127.0.0.1:25317
    encoding: xml
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlphttp]}
",
        env: &[],
        valid: false,
        mentions: &["xml"],
    },
    Case {
        name: "exporter-bad-duration",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    timeout: '10'
<service>
",
        env: &[],
        valid: false,
        mentions: &["timeout"],
    },
    Case {
        name: "exporter-duration-number",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    timeout: 10
<service>
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "exporter-duration-words",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    timeout: soon
<service>
",
        env: &[],
        valid: false,
        mentions: &["timeout"],
    },
    Case {
        name: "exporter-negative-timeout",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    timeout: -1s
<service>
",
        env: &[],
        valid: false,
        mentions: &["timeout"],
    },
    Case {
        name: "exporter-queue-negative",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    sending_queue: {num_consumers: -1}
<service>
",
        env: &[],
        valid: false,
        mentions: &["num_consumers"],
    },
    Case {
        name: "exporter-queue-text",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    sending_queue: {queue_size: many}
<service>
",
        env: &[],
        valid: false,
        mentions: &["queue_size"],
    },
    Case {
        name: "exporter-queue-string-number",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    sending_queue: {queue_size: '5'}
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "exporter-queue-bad-sizer",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    sending_queue: {sizer: kilos}
<service>
",
        env: &[],
        valid: false,
        mentions: &["kilos"],
    },
    Case {
        name: "exporter-retry-negative",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    retry_on_failure: {multiplier: -1}
<service>
",
        env: &[],
        valid: false,
        mentions: &["multiplier"],
    },
    Case {
        name: "exporter-retry-elapsed",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    retry_on_failure: {max_elapsed_time: 10s}
<service>
",
        env: &[],
        valid: false,
        mentions: &["max_elapsed_time"],
    },
    Case {
        name: "exporter-bool-text",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    tls: {insecure: maybe}
<service>
",
        env: &[],
        valid: false,
        mentions: &["insecure"],
    },
    Case {
        name: "exporter-bool-yes",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    tls: {insecure: yes}
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "exporter-tls-bad-version",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    tls: {min_version: '9.9'}
<service>
",
        env: &[],
        valid: false,
        mentions: &["9.9"],
    },
    Case {
        name: "debug-bad-verbosity",
        config: "
<receivers>
exporters:
  debug:
    verbosity: loud
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
",
        env: &[],
        valid: false,
        mentions: &["loud"],
    },
    Case {
        name: "batch-bad-sizes",
        config: "
<receivers>
processors:
  batch: {send_batch_size: 100, send_batch_max_size: 10}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["send_batch_max_size"],
    },
    Case {
        name: "batch-negative-timeout",
        config: "
<receivers>
processors:
  batch: {timeout: -1s}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["timeout"],
    },
    Case {
        name: "memory-limiter-empty",
        config: "
<receivers>
processors:
  memory_limiter: {}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "memory-limiter-no-interval",
        config: "
<receivers>
processors:
  memory_limiter: {limit_mib: 100}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["check_interval"],
    },
    Case {
        name: "memory-limiter-no-limit",
        config: "
<receivers>
processors:
  memory_limiter: {check_interval: 1s}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["limit_mib"],
    },
    Case {
        name: "memory-limiter-spike",
        config: "
<receivers>
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 100, spike_limit_mib: 200}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["spike_limit_mib"],
    },
    Case {
        name: "env-missing",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: ${env:REC_MISSING}
<service>
",
        env: &[],
        valid: false,
        mentions: &["endpoint"],
    },
    Case {
        name: "env-set",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: ${env:REC_ENDPOINT}
    tls: {insecure: true}
<service>
",
        env: &[("REC_ENDPOINT", "127.0.0.1:25317")],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "env-default",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: ${env:REC_MISSING:-127.0.0.1:25317}
<service>
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "env-dollar-name",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: $REC_ENDPOINT
<service>
",
        env: &[("REC_ENDPOINT", "127.0.0.1:25317")],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "env-escape",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    headers: {x: $$REC}
<service>
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "env-map",
        config: "
<receivers>
exporters:
  otlp: ${env:REC_MAP}
<service>
",
        env: &[("REC_MAP", "{endpoint: '127.0.0.1:25317'}")],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "env-number-for-string",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: 127.0.0.1:25317
    headers: {x: '${env:REC_NUM}'}
<service>
",
        env: &[("REC_NUM", "0123")],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "env-unknown-scheme",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: ${vault:x}
<service>
",
        env: &[],
        valid: false,
        mentions: &["vault"],
    },
    Case {
        name: "env-unclosed",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: '${env:REC_ENDPOINT'
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "file-missing",
        config: "
<receivers>
exporters:
  otlp:
    endpoint: ${file:/nonexistent/file}
<service>
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "telemetry-unknown",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: none}, colour: red}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["colour"],
    },
    Case {
        name: "telemetry-bad-metrics-level",
        config: "
<receivers>
<exporters>
service:
  telemetry: {metrics: {level: heaps}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["heaps"],
    },
    Case {
        name: "alias-names",
        config: "
<receivers>
exporters:
  otlp_grpc: {endpoint: 127.0.0.1:25317, tls: {insecure: true}}
  otlp_http: {endpoint: 'http://127.0.0.1:25317'}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_grpc, otlp_http]}
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "tail-unknown-type",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: sometimes}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["sometimes"],
    },
    Case {
        name: "tail-no-type",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "tail-no-name",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {type: always_sample}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "tail-same-name",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: always_sample}
      - {name: a, type: trace_flags}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["duplicate policy name"],
    },
    Case {
        name: "tail-bad-status",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: status_code, status_code: {status_codes: [BAD]}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["BAD"],
    },
    Case {
        name: "tail-empty-status",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: status_code}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "tail-lower-status",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: status_code, status_code: {status_codes: [error]}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "tail-bad-regex",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: string_attribute, string_attribute: {key: k, values: ['('], enabled_regex_matching: true}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "tail-numeric-no-bounds",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: numeric_attribute, numeric_attribute: {key: k}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "tail-bad-ottl",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: ottl_condition, ottl_condition: {span: ['name = 5']}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "tail-no-ottl",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: ottl_condition, ottl_condition: {error_mode: ignore}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
    Case {
        name: "tail-bad-strategy",
        config: "
<receivers>
processors:
  tail_sampling:
    sampling_strategy: later
    policies:
      - {name: a, type: always_sample}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["later"],
    },
    Case {
        name: "tail-bad-wait",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: '5'
    policies:
      - {name: a, type: always_sample}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["decision_wait"],
    },
    Case {
        name: "tail-negative-traces",
        config: "
<receivers>
processors:
  tail_sampling:
    num_traces: -1
    policies:
      - {name: a, type: always_sample}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["num_traces"],
    },
    Case {
        name: "tail-composite-bad-order",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: composite, composite: {max_total_spans_per_second: 10, policy_order: [x], composite_sub_policy: [{name: y, type: always_sample}]}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "tail-drop-in-and",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: and, and: {and_sub_policy: [{name: d, type: drop}]}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["drop"],
    },
    Case {
        name: "tail-unknown-policy-field",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: latency, latency: {threshold: 5}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &["threshold"],
    },
    Case {
        name: "tail-unknown-policy-map",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: always_sample, extra: {x: 1}}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: true,
        mentions: &[],
    },
    Case {
        name: "tail-in-logs",
        config: "
<receivers>
processors:
  tail_sampling:
    decision_wait: 1s
    policies:
      - {name: a, type: always_sample}
<exporters>
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [otlp], processors: [tail_sampling], exporters: [otlp]}
",
        env: &[],
        valid: false,
        mentions: &[],
    },
];
