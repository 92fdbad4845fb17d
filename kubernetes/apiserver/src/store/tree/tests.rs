use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::api::GroupResource;

fn object(namespace: &str, name: &str, revision: u64) -> Arc<Stored> {
    let key = ObjectKey::new(GroupResource::new("", "pods"), namespace, name);
    Arc::new(Stored::from_value(key, revision, &json!({})).unwrap())
}

fn shown(tree: &ObjectTree) -> Vec<(String, u64)> {
    tree.iter().map(|object| (object.namespaced_name().to_string(), object.revision)).collect()
}

/// `-` and `.` sort before `/`, digits and letters after it.
fn namespace() -> impl Strategy<Value = String> {
    "[ab.0-]{1,3}"
}

proptest! {
    #[test]
    fn places_are_ordered_as_etcd_orders_their_texts(
        one in (namespace(), namespace()), other in (namespace(), namespace()),
    ) {
        let place = |(namespace, name): &(String, String)| (format!("{namespace}/{name}"), namespace.clone(), name.clone());
        let ((a, ns_a, name_a), (b, ns_b, name_b)) = (place(&one), place(&other));
        let order = NamespacedName { namespace: &ns_a, name: &name_a }.cmp(&NamespacedName { namespace: &ns_b, name: &name_b });
        prop_assert_eq!(order, a.cmp(&b));
        prop_assert_eq!(NamespacedName::parse(&a), NamespacedName { namespace: &ns_a, name: &name_a });
    }

    /// Enough objects for several chunks, and removals that empty and join them.
    #[test]
    fn a_tree_is_a_map_and_its_clones_stay_as_they_are(
        steps in proptest::collection::vec((0..3u8, 0..400u16, any::<bool>()), 0..1200),
    ) {
        let mut tree = ObjectTree::default();
        let mut model = BTreeMap::new();
        let mut snapshots = Vec::new();
        for (revision, (kind, number, snapshot)) in steps.into_iter().enumerate() {
            let name = format!("n{number}");
            let revision = revision as u64;
            let key = format!("ns/{name}");
            let place = NamespacedName { namespace: "ns", name: &name };
            if kind > 0 {
                let replaced = tree.insert(object("ns", &name, revision)).map(|replaced| replaced.revision);
                prop_assert_eq!(replaced, model.insert(key.clone(), revision));
            } else {
                let removed = tree.remove(place).map(|removed| removed.revision);
                prop_assert_eq!(removed, model.remove(&key));
            }
            prop_assert_eq!(tree.get(place).map(|found| found.revision), model.get(&key).copied());
            prop_assert_eq!(tree.len(), model.len());
            if snapshot && snapshots.len() < 4 {
                snapshots.push((tree.clone(), model.clone()));
            }
        }
        snapshots.push((tree, model));
        for (tree, model) in snapshots {
            let ranks: Vec<_> = tree.iter().map(|object| tree.rank(tree.seek(|other| other < object.namespaced_name()))).collect();
            prop_assert_eq!(ranks, (0..model.len()).collect::<Vec<_>>());
            prop_assert_eq!(shown(&tree), model.into_iter().collect::<Vec<_>>());
        }
    }
}

#[test]
fn positions_visit_everything() {
    let mut tree = ObjectTree::default();
    for number in 0..500 {
        tree.insert(object("", &format!("{number:03}"), number));
    }
    let mut position = TreePosition::default();
    for number in 0..500 {
        assert_eq!(tree.get_at(position).map(|object| object.revision), Some(number));
        assert_eq!(tree.rank(position) as u64, number);
        position = tree.next(position);
    }
    assert!(tree.get_at(position).is_none());
    assert_eq!(tree.rank(position), 500);
}

#[test]
fn chunks_that_shrink_are_joined() {
    let mut tree = ObjectTree::default();
    for number in 0..5000 {
        tree.insert(object("", &format!("{number:04}"), number));
    }
    for number in (0..5000).filter(|number| number % 100 != 0) {
        tree.remove(NamespacedName { namespace: "", name: &format!("{number:04}") });
    }
    assert_eq!(tree.len(), 50);
    assert!(tree.chunks.len() < 20, "{} chunks for 50 objects", tree.chunks.len());
}
