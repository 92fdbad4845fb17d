//! Connectors between pipelines.

#![allow(clippy::unwrap_used, clippy::panic)]

use kubewake_config::{
    ComponentId, FixedSources, LoadedDocument, load,
    model::{ConnectorConfig, ForwardConnector},
};

/// A document with the connectors `forward` and `forward/2` and these pipelines.
fn document(pipelines: &str) -> String {
    format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{nop: }}\nconnectors: {{forward: , forward/2: }}\n\
         service:\n  pipelines:\n{pipelines}"
    )
}

fn accept(text: &str) -> LoadedDocument {
    load(text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}"))
}

fn refuse(text: &str) -> String {
    match load(text, &FixedSources::new()) {
        Ok(_) => panic!("it is accepted:\n{text}"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn connector_joins_two_pipelines() {
    let text = document(
        "    traces/in: {receivers: [otlp], exporters: [forward, nop]}
    traces/out: {receivers: [forward, otlp], exporters: [forward/2]}
    traces/last: {receivers: [forward/2], exporters: [nop]}
",
    );
    let loaded = accept(&text);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let forward = ConnectorConfig::Forward(ForwardConnector);
    assert_eq!(loaded.document.connectors.get(&ComponentId::new("forward")), Some(&forward));
    let (_, last) = loaded.document.service.pipelines.first_key_value().unwrap();
    assert_eq!(last.exporters, [ComponentId::new("forward"), ComponentId::new("nop")]);
}

#[test]
fn connector_joins_pipelines_of_each_signal() {
    let text = document(
        "    traces: {receivers: [otlp], exporters: [forward]}
    traces/out: {receivers: [forward], exporters: [nop]}
    logs: {receivers: [otlp], exporters: [forward, forward/2]}
    logs/out: {receivers: [forward], exporters: [nop]}
    logs/also: {receivers: [forward/2, forward], exporters: [nop]}
",
    );
    accept(&text);
}

#[test]
fn unused_connector_is_a_warning() {
    let text = document("    traces: {receivers: [otlp], exporters: [nop]}\n");
    let warnings: Vec<String> = accept(&text).warnings.iter().map(ToString::to_string).collect();
    assert!(warnings.iter().any(|text| text.contains("the connector `forward/2` is not used")), "{warnings:?}");
}

#[test]
fn connector_that_is_used_on_one_side_only_is_refused() {
    let cases = [
        (
            "    traces: {receivers: [otlp], exporters: [forward]}\n",
            "the connector `forward` is an exporter of the pipeline `traces`, but a receiver of no pipeline",
            "list `forward` in `receivers` of a pipeline of traces",
        ),
        (
            "    logs: {receivers: [otlp, forward], exporters: [nop]}\n",
            "the connector `forward` is a receiver of the pipeline `logs`, but an exporter of no pipeline",
            "list `forward` in `exporters` of a pipeline of logs",
        ),
        (
            "    traces: {receivers: [otlp], exporters: [forward]}\n    logs: {receivers: [forward], exporters: [nop]}\n",
            "the connector `forward` is a receiver of the pipeline `logs`",
            "the connector `forward` is an exporter of the pipeline `traces`",
        ),
    ];
    for (pipelines, message, help) in cases {
        let errors = refuse(&document(pipelines));
        assert!(errors.contains(message) && errors.contains(help), "{errors}");
    }
}

#[test]
fn cycle_of_connectors_is_refused_with_its_members() {
    let text = document(
        "    traces: {receivers: [otlp], exporters: [forward]}
    traces/a: {receivers: [forward], exporters: [forward/2]}
    traces/b: {receivers: [forward/2], exporters: [forward]}
",
    );
    let errors = refuse(&text);
    assert!(errors.contains("form a cycle: traces/a → `forward/2` → traces/b → `forward` → traces/a"), "{errors}");
    let own = document("    logs: {receivers: [otlp, forward], exporters: [forward]}\n");
    assert!(refuse(&own).contains("form a cycle: logs → `forward` → logs"), "{}", refuse(&own));
}

#[test]
fn connector_with_the_id_of_another_component_is_refused() {
    let text = "receivers: {otlp: {protocols: {grpc: }}, forward: }\nexporters: {nop: }\nconnectors: {forward: }\n\
                service: {pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}";
    let errors = refuse(text);
    assert!(errors.contains("the connector `forward` has the id of the receiver `forward`"), "{errors}");
}

#[test]
fn unknown_connectors_are_refused() {
    let text = |name: &str| {
        format!(
            "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{nop: }}\nconnectors: {{{name}: }}\n\
             service: {{pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}}}"
        )
    };
    let errors = refuse(&text("spanmetrics"));
    assert!(errors.contains("the connector `spanmetrics` is not supported by this build"), "{errors}");
    let errors = refuse(&text("foward"));
    assert!(errors.contains("unknown connector `foward`") && errors.contains("did you mean `forward`?"), "{errors}");
    let errors = refuse(&text("forward").replace("forward: ", "forward: {speed: 1}"));
    assert!(errors.contains("unknown field `speed`"), "{errors}");
}

#[test]
fn long_chain_of_connectors_is_checked_without_recursion() {
    let count = 10_000;
    let connectors: String = (0..count).map(|index| format!("  forward/{index}:\n")).collect();
    let mut pipelines = String::from("    traces/0: {receivers: [otlp], exporters: [forward/0]}\n");
    for index in 1..count {
        let before = index - 1;
        pipelines += &format!("    traces/{index}: {{receivers: [forward/{before}], exporters: [forward/{index}]}}\n");
    }
    let last = count - 1;
    let chain = |target: &str| {
        format!(
            "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{nop: }}\nconnectors:\n{connectors}\
             service:\n  pipelines:\n{pipelines}    traces/end: {{receivers: [forward/{last}], exporters: [{target}]}}\n"
        )
    };
    assert_eq!(accept(&chain("nop")).document.service.pipelines.len(), count + 1);
    let errors = refuse(&chain("forward/0"));
    assert!(errors.contains("form a cycle") && errors.contains('…'), "{errors}");
}
