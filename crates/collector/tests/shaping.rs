//! `filter`, `attributes`, `resource` and `redaction` on bytes have the same results as a simple reference
//! implementation on decoded data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs, dead_code)]

#[path = "../../otlp/tests/support/model.rs"]
mod model;
#[path = "shaping/plain.rs"]
mod plain;
#[path = "shaping/redaction.rs"]
mod redaction;
#[path = "../../otlp/tests/support/requests.rs"]
mod requests;
#[path = "shaping/rules.rs"]
mod rules;

use std::sync::Arc;

use bytes::Bytes;
use kubewake_collector::{
    core::{Charge, Origin, Part},
    processor::{
        attributes::AttributesTransform,
        filter::FilterTransform,
        redaction::RedactionTransform,
        resource::ResourceTransform,
        transform::{RequestTransform, TransformedRequest},
    },
};
use kubewake_config::model::{self as config, RecordSelection};
use kubewake_otlp::{Signal, UnlimitedAllowance, scan};
use model::{Decoded, Record};
use opentelemetry_proto::tonic::{logs::v1::LogRecord, metrics::v1::Metric, resource::v1::Resource, trace::v1::Span};
use plain::Plain;
use proptest::prelude::*;
use prost::Message;
use rules::Picker;

fn part(bytes: Vec<u8>, items: usize) -> Part {
    let origin = Origin {
        peer: Some("[::ffff:10.0.0.7]:1234".parse().unwrap()),
        subject: Some("somebody".into()),
        namespace: None,
        metadata: vec![
            ("x-tenant".into(), "one".into()),
            ("other".into(), "?".into()),
            ("x-tenant".into(), "two".into()),
        ],
        ..Origin::default()
    };
    Part::new(Bytes::from(bytes), items, Arc::new(origin), Arc::new(Charge::exempt()))
}

/// The request before, the part made of it, and the result, which must be a valid request with the right number
/// of items.
fn mapped<R: Record>(request: &impl Message, mapper: &dyn RequestTransform) -> (Decoded<R>, Part, TransformedRequest) {
    let bytes = request.encode_to_vec();
    let before = Decoded::<R>::of(&bytes);
    let part = part(bytes, before.items());
    let mapped = mapper.transform(R::SIGNAL, &part, &mut UnlimitedAllowance).unwrap();
    assert_eq!(scan(R::SIGNAL, &mapped.bytes).unwrap().items, mapped.items);
    (before, part, mapped)
}

fn filters<R: Plain>(request: &impl Message, seed: u64) {
    let decoded = Decoded::<R>::of(&request.encode_to_vec());
    let mut picker = Picker::new(seed, &decoded);
    let selection = RecordSelection {
        include: (0..picker.below(3)).map(|_| picker.rule()).collect(),
        exclude: (0..picker.below(3)).map(|_| picker.rule()).collect(),
    };
    let mut settings = config::FilterProcessor::default();
    *match R::SIGNAL {
        Signal::Traces => &mut settings.spans,
        Signal::Metrics => &mut settings.metrics,
        Signal::Logs => &mut settings.logs,
    } = selection.clone();
    let (before, part, mapped) = mapped::<R>(request, &FilterTransform::new(settings));
    let expected = before.clone().retain(|entry, scope, record| {
        let any =
            |rules: &[config::MatchProperties]| rules.iter().any(|rule| plain::matches(rule, entry, scope, record));
        (selection.include.is_empty() || any(&selection.include)) && !any(&selection.exclude)
    });
    assert_eq!(Decoded::<R>::of(&mapped.bytes), expected, "{selection:?}");
    if expected == before {
        assert_eq!(mapped.bytes.as_ptr(), part.bytes.as_ptr(), "nothing was copied");
    }
}

fn changes_attributes<R: Plain>(request: &impl Message, seed: u64) {
    let decoded = Decoded::<R>::of(&request.encode_to_vec());
    let mut picker = Picker::new(seed, &decoded);
    let include = picker.flip().then(|| picker.rule());
    let exclude = picker.flip().then(|| picker.rule());
    let actions = picker.actions();
    let settings =
        config::AttributesProcessor { include: include.clone(), exclude: exclude.clone(), actions: actions.clone() };
    let (before, part, mapped) = mapped::<R>(request, &AttributesTransform::new(settings));
    let mut expected = before.clone();
    for (entry, old) in expected.0.iter_mut().zip(&before.0) {
        for (scope, old_scope) in entry.scopes.iter_mut().zip(&old.scopes) {
            for record in &mut scope.records {
                let meant = include.iter().all(|rule| plain::matches(rule, old, old_scope, record))
                    && !exclude.iter().any(|rule| plain::matches(rule, old, old_scope, record));
                if meant {
                    record.attribute_lists().into_iter().for_each(|list| plain::change(list, &actions, &part.origin));
                }
            }
        }
    }
    assert_eq!(Decoded::<R>::of(&mapped.bytes), expected, "{actions:?}");
    if expected == before && mapped.bytes == part.bytes {
        assert_eq!(mapped.bytes.as_ptr(), part.bytes.as_ptr(), "nothing was copied");
    }
}

fn changes_resources<R: Plain>(request: &impl Message, seed: u64) {
    let decoded = Decoded::<R>::of(&request.encode_to_vec());
    let actions = Picker::new(seed, &decoded).actions();
    let (before, part, mapped) =
        mapped::<R>(request, &ResourceTransform::new(config::ResourceProcessor { actions: actions.clone() }));
    let mut expected = before;
    for entry in &mut expected.0 {
        let mut resource = entry.resource.clone().unwrap_or_default();
        plain::change(&mut resource.attributes, &actions, &part.origin);
        if entry.resource.is_some() || resource != Resource::default() {
            entry.resource = Some(resource);
        }
    }
    assert_eq!(Decoded::<R>::of(&mapped.bytes), expected, "{actions:?}");
}

fn redacts<R: redaction::Redacted>(request: &impl Message, seed: u64) {
    let decoded = Decoded::<R>::of(&request.encode_to_vec());
    let settings = redaction::settings(&mut Picker::new(seed, &decoded));
    let (before, part, mapped) = mapped::<R>(request, &RedactionTransform::new(settings.clone()));
    let mut expected = before.clone();
    redaction::redact_all(&settings, &mut expected);
    let mut found = Decoded::<R>::of(&mapped.bytes);
    for side in [&mut found, &mut expected] {
        let scopes = side.0.iter_mut().flat_map(|entry| &mut entry.scopes);
        scopes.flat_map(|scope| &mut scope.records).for_each(|record| redaction::fill(record.body()));
    }
    assert_eq!(found, expected, "{settings:?}");
    if expected == before && mapped.bytes == part.bytes {
        assert_eq!(mapped.bytes.as_ptr(), part.bytes.as_ptr(), "nothing was copied");
    }
}

macro_rules! for_each_signal {
    ($($signal:ident: $record:ty),*) => {$(
        mod $signal {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

                #[test]
                fn filter(request in requests::$signal(), seed: u64) {
                    filters::<$record>(&request, seed);
                }

                #[test]
                fn attributes(request in requests::$signal(), seed: u64) {
                    changes_attributes::<$record>(&request, seed);
                }

                #[test]
                fn resource(request in requests::$signal(), seed: u64) {
                    changes_resources::<$record>(&request, seed);
                }

                #[test]
                fn redaction(request in requests::$signal(), seed: u64) {
                    redacts::<$record>(&request, seed);
                }
            }
        }
    )*};
}

for_each_signal!(traces: Span, logs: LogRecord, metrics: Metric);
