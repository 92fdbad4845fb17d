//! Checks the resources in the documentation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::fs;

use jiff::Timestamp;
use kubewake_api::{
    TelemetryPipeline,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline},
    validate_spec, validate_telemetry,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

#[test]
fn every_resource_of_the_page_on_pipelines_is_right() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pipelines.md")).unwrap();
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    assert!(!blocks.is_empty());
    for object in blocks.iter().flat_map(|block| serde_saphyr::from_multiple::<Value>(block).unwrap()) {
        let pipeline = match object["kind"].as_str().unwrap() {
            "TracePipeline" => TelemetryPipeline::from(&read::<TracePipeline>(&object)),
            "LogPipeline" => TelemetryPipeline::from(&read::<LogPipeline>(&object)),
            "MetricPipeline" => TelemetryPipeline::from(&read::<MetricPipeline>(&object)),
            _ => {
                assert_eq!(validate_telemetry(&read::<Telemetry>(&object).spec).problems, []);
                continue;
            }
        };
        assert_eq!(validate_spec(&pipeline, Timestamp::now()).problems, [], "{object}");
    }
}

/// Parses an object without unknown fields: serializing it again yields the same.
fn read<K: DeserializeOwned + Serialize>(object: &Value) -> K {
    let resource: K = serde_json::from_value(object.clone()).unwrap();
    assert_known(&object["spec"], &serde_json::to_value(&resource).unwrap()["spec"], "spec");
    resource
}

fn assert_known(written: &Value, read: &Value, path: &str) {
    match written {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let known = read.get(name).unwrap_or_else(|| panic!("{path}.{name} is unknown"));
            assert_known(value, known, &format!("{path}.{name}"));
        }),
        Value::Array(items) => items.iter().zip(read.as_array().unwrap()).for_each(|(item, read)| {
            assert_known(item, read, path);
        }),
        Value::Number(number) => assert_eq!(number.as_f64(), read.as_f64(), "{path}"),
        value => assert_eq!(value, read, "{path}"),
    }
}
