//! Operators and expressions of the receiver `file_log`.

use kubewake_config::file_log::{Expression, OperatorGraph, RecordField};
use kubewake_log_operators::{LogEntry, OperatorChain, encode_request};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use prost::Message;

use crate::{memory::bounded, two_texts};

/// A text is an expression or has an error within it; a field that was parsed is the same when it is written and read.
pub(super) fn expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match bounded("an expression", data.len(), 4096, 1 << 20, || Expression::parse(text)) {
        Ok(parsed) => assert_eq!(parsed.as_str(), text),
        Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}"),
    }
    match RecordField::parse(text) {
        Ok(field) if !text.contains(['"', '\'']) => {
            assert_eq!(RecordField::parse(&field.to_string()), Ok(field));
        }
        Ok(_) => {}
        Err(error) => assert!(error.column <= text.chars().count() + 1, "{error}"),
    }
}

/// Lines pass the operators of a list: nothing stays behind, and what leaves is a request.
pub(super) fn operators(data: &[u8]) {
    let Some((settings, lines)) = two_texts(data) else { return };
    let Ok(graph) = OperatorGraph::from_yaml(settings) else { return };
    let mut chain = OperatorChain::new(&graph);
    let mut out = Vec::new();
    for line in lines.lines().take(20) {
        chain.process(LogEntry::new(line.into()), &mut out);
    }
    chain.flush_all(&mut out);
    assert_eq!((chain.held_bytes(), chain.held_since(), chain.next_deadline()), (0, None, None));
    if graph.operators.is_empty() {
        assert_eq!(out.len(), lines.lines().take(20).count());
    }
    let request = encode_request(&out);
    let decoded = ExportLogsServiceRequest::decode(request.as_slice());
    // A line of the fuzzer may lack UTF-8 only where an operator took it apart between bytes.
    if let Ok(decoded) = decoded {
        let records = decoded.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
        assert_eq!(records.map(|scope| scope.log_records.len()).sum::<usize>(), out.len());
    }
}
