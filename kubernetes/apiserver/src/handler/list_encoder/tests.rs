use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{LIST_CHUNK_BYTES, ListShape};
use crate::{
    api::{GroupResource, GroupVersion, ObjectKey},
    codec::{
        MediaType,
        accept::{IncludeObjectPolicy, MediaTypeOptions, MetaVersion, ObjectForm as AcceptedForm},
    },
    handler::{handler_response::ListPage, transform::ResponseTransform},
    http::Body,
    kinds,
    store::Stored,
};

fn listing(count: usize) -> ListPage {
    let items = (0..count).map(|index| {
        let key = ObjectKey::new(GroupResource::new("", "configmaps"), "default", &format!("object-{index}"));
        let data = json!({ "filler": "line\nline ".repeat(300), "number": "1" });
        let object = json!({ "metadata": { "name": &*key.name, "labels": { "a": "b" } }, "data": data });
        Arc::new(Stored::from_value(key, 7, &object).unwrap())
    });
    ListPage { items: items.collect(), revision: 9, continuation: Some("next".to_owned()), remaining: Some(3) }
}

fn shape(media: MediaType, pretty: bool, form: AcceptedForm) -> ListShape {
    let catalog = kinds::catalog();
    let resource = catalog.get(&GroupVersion::new("", "v1"), "configmaps").unwrap();
    ListShape {
        resource: Arc::clone(resource),
        view: None,
        form: ResponseTransform::from_chosen(MediaTypeOptions { media, pretty, form }),
    }
}

fn pieces(body: Body) -> Vec<Bytes> {
    body.into_chunks().ok().unwrap().collect()
}

#[test]
fn large_list_in_pieces_is_the_list_at_once() {
    let table = AcceptedForm::Table { version: MetaVersion::V1, include: IncludeObjectPolicy::Metadata };
    let partial = AcceptedForm::PartialObjectMetadataList { version: MetaVersion::V1 };
    for form in [AcceptedForm::Object, table, partial] {
        for (media, pretty) in
            [(MediaType::Yaml, false), (MediaType::Json, false), (MediaType::Json, true), (MediaType::Protobuf, false)]
        {
            let what = format!("{media:?} {pretty} {form:?}");
            let shape = shape(media, pretty, form);
            let whole = shape.encode_at_once(&listing(200));
            let body = shape.encode_in_chunks(listing(200));
            assert!(body.len().is_none_or(|length| length == whole.len() as u64), "{what}: its length");
            let pieces = pieces(body);
            assert!(pieces.len() > 1 || form != AcceptedForm::Object, "{what}");
            assert!(pieces.iter().all(|piece| piece.len() < 2 * LIST_CHUNK_BYTES), "{what}");
            assert!(pieces.concat() == whole, "{what}");
        }
    }
}

#[test]
fn small_list_has_a_length() {
    let body = shape(MediaType::Yaml, false, AcceptedForm::Object).body(listing(2));
    assert!(body.len().is_some());
    let text = pieces(body).concat();
    let list: Value = crate::codec::yaml::decode(&text).unwrap().value;
    assert_eq!(list.pointer("/items/1/metadata/name"), Some(&json!("object-1")));
}
