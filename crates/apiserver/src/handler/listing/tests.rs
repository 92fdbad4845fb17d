use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::{ListShape, PIECE};
use crate::{
    api::{GroupResource, GroupVersion, ObjectKey},
    codec::{
        Media,
        accept::{Chosen, Form as AcceptedForm, Include, MetaVersion},
    },
    handler::{answer::Listing, form::Form},
    http::Body,
    kinds,
    store::Stored,
};

fn listing(count: usize) -> Listing {
    let items = (0..count).map(|index| {
        let key = ObjectKey::new(GroupResource::new("", "configmaps"), "default", &format!("object-{index}"));
        let data = json!({ "filler": "line\nline ".repeat(300), "number": "1" });
        let object = json!({ "metadata": { "name": &*key.name, "labels": { "a": "b" } }, "data": data });
        Arc::new(Stored::of(key, 7, &object).unwrap())
    });
    Listing { items: items.collect(), revision: 9, continuation: Some("next".to_owned()), remaining: Some(3) }
}

fn shape(media: Media, pretty: bool, form: AcceptedForm) -> ListShape {
    let catalog = kinds::catalog();
    let resource = catalog.get(&GroupVersion::new("", "v1"), "configmaps").unwrap();
    ListShape { resource: Arc::clone(resource), view: None, form: Form::of_chosen(Chosen { media, pretty, form }) }
}

fn pieces(body: Body) -> Vec<Bytes> {
    body.into_pieces().ok().unwrap().collect()
}

#[test]
fn large_list_in_pieces_is_the_list_at_once() {
    let table = AcceptedForm::Table { version: MetaVersion::V1, include: Include::Metadata };
    let partial = AcceptedForm::PartialObjectMetadataList { version: MetaVersion::V1 };
    for form in [AcceptedForm::Object, table, partial] {
        for (media, pretty) in
            [(Media::Yaml, false), (Media::Json, false), (Media::Json, true), (Media::Protobuf, false)]
        {
            let what = format!("{media:?} {pretty} {form:?}");
            let shape = shape(media, pretty, form);
            let whole = shape.at_once(&listing(200));
            let body = shape.in_pieces(listing(200));
            assert!(body.len().is_none_or(|length| length == whole.len() as u64), "{what}: its length");
            let pieces = pieces(body);
            assert!(pieces.len() > 1 || form != AcceptedForm::Object, "{what}");
            assert!(pieces.iter().all(|piece| piece.len() < 2 * PIECE), "{what}");
            assert!(pieces.concat() == whole, "{what}");
        }
    }
}

#[test]
fn small_list_has_a_length() {
    let body = shape(Media::Yaml, false, AcceptedForm::Object).body(listing(2));
    assert!(body.len().is_some());
    let text = pieces(body).concat();
    let list: Value = crate::codec::yaml::decode(&text).unwrap().value;
    assert_eq!(list.pointer("/items/1/metadata/name"), Some(&json!("object-1")));
}
