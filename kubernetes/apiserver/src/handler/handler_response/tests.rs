use serde_json::json;

use super::*;
use crate::{
    api::{GroupResource, GroupVersion, ObjectKey},
    kinds,
};

fn listing(sizes: &[usize]) -> ListPage {
    let items = sizes.iter().enumerate().map(|(index, size)| {
        let key = ObjectKey::new(GroupResource::new("", "configmaps"), "default", &format!("object-{index}"));
        let object = json!({ "metadata": { "name": &*key.name }, "data": { "filler": "x".repeat(*size) } });
        Arc::new(Stored::from_value(key, 7, &object).unwrap())
    });
    ListPage { items: items.collect(), revision: 9, continuation: None, remaining: None }
}

/// The sizes of the chunks of a list, and their content together.
fn written(sizes: &[usize]) -> (Vec<usize>, Value) {
    let catalog = kinds::catalog();
    let resource = catalog.get(&GroupVersion::new("", "v1"), "configmaps").unwrap();
    let body = list(resource, listing(sizes));
    let length = body.len().unwrap();
    let pieces: Vec<Bytes> = body.into_chunks().ok().unwrap().collect();
    assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>() as u64, length, "the length was said before");
    let text: Vec<u8> = pieces.iter().flatten().copied().collect();
    (pieces.iter().map(Bytes::len).collect(), serde_json::from_slice(&text).unwrap())
}

#[test]
fn a_list_of_nothing_is_a_list() {
    let (_, list) = written(&[]);
    let meta = json!({ "resourceVersion": "9" });
    assert_eq!(list, json!({ "kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta, "items": [] }));
}

#[test]
fn a_list_is_written_in_pieces_of_whole_objects() {
    let (pieces, list) = written(&[2000; 200]);
    assert!(pieces.len() > 5 && pieces.iter().all(|length| *length <= LIST_CHUNK_BYTES), "{pieces:?}");
    let items = list["items"].as_array().unwrap();
    let names: Vec<&str> = items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..200).map(|index| format!("object-{index}")).collect();
    assert_eq!(names, expected);
}

#[test]
fn an_object_larger_than_a_piece_is_a_piece() {
    let (pieces, list) = written(&[10, 3 * LIST_CHUNK_BYTES, 10]);
    assert_eq!(pieces.len(), 3);
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    let (pieces, _) = written(&[3 * LIST_CHUNK_BYTES]);
    assert_eq!(pieces.len(), 2, "what stands before it, and itself with the end");
}
