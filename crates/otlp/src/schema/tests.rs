use std::collections::HashSet;

use super::{FieldKind, FieldSchema, LOGS_REQUEST, MAX_FIELDS, METRICS_REQUEST, MessageSchema, TRACES_REQUEST};

/// Every message that is reachable from the three requests.
fn all_messages() -> Vec<&'static MessageSchema> {
    let mut found: Vec<&'static MessageSchema> = vec![&TRACES_REQUEST, &LOGS_REQUEST, &METRICS_REQUEST];
    let mut next = 0;
    while next < found.len() {
        for field in found[next].fields {
            if let FieldKind::Message(message) = field.kind
                && !found.iter().any(|known| known.name == message.name)
            {
                found.push(message);
            }
        }
        next += 1;
    }
    found
}

#[test]
fn every_message_fits_the_slots_of_a_walk() {
    assert!(all_messages().iter().all(|message| message.fields.len() <= MAX_FIELDS));
}

#[test]
fn no_message_uses_a_number_or_a_name_twice() {
    for message in all_messages() {
        let numbers: HashSet<u32> = message.fields.iter().map(|field| field.number).collect();
        let names: HashSet<&str> = message.fields.iter().map(|field| field.name).collect();
        assert_eq!((numbers.len(), names.len()), (message.fields.len(), message.fields.len()), "{}", message.name);
    }
}

#[test]
fn a_field_is_found_by_both_spellings_and_by_no_other() {
    let found = |name: &str| super::SPAN.by_name(name.as_bytes()).map(|(_, field): (usize, &FieldSchema)| field.number);
    assert_eq!(found("startTimeUnixNano"), Some(7));
    assert_eq!(found("start_time_unix_nano"), Some(7));
    for stranger in ["StartTimeUnixNano", "start_timeUnixNano", "start_time_unix_nano_", "_name", "nam", "", "names"] {
        assert_eq!(found(stranger), None, "{stranger}");
    }
}
