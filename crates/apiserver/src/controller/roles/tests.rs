//! What the index makes of changes that nobody saw.

use serde_json::json;

use super::*;
use crate::{
    auth::{Attributes, User},
    store,
};

fn bob_may_read(rbac: &Rbac) -> bool {
    let bob = User { name: "bob".into(), ..User::default() };
    rbac.decide(&Attributes::resource(&bob, "get", "", "pods").namespace("a")).is_allowed()
}

#[tokio::test]
async fn a_binding_that_went_unseen_grants_nothing_any_more() {
    let store = Store::open(store::Options::default()).unwrap();
    let rbac = Rbac::default();
    let mut index = Index { rbac: &rbac, store: &store, known: HashSet::new() };
    let (roles, bindings) = (GroupResource::new(GROUP, "roles"), GroupResource::new(GROUP, "rolebindings"));
    let role = json!({"metadata": {"name": "r", "namespace": "a"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let binding = json!({"metadata": {"name": "b", "namespace": "a"},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": "bob"}]});
    let role = store.create(ObjectKey::new(roles.clone(), "a", "r"), role).await.unwrap();
    let binding = store.create(ObjectKey::new(bindings.clone(), "a", "b"), binding).await.unwrap();
    index.take(&roles, Change::Set(role));
    index.take(&bindings, Change::Set(Arc::clone(&binding)));
    index.take(&bindings, Change::Reset);
    assert!(bob_may_read(&rbac), "what is there stays");

    store.delete(&binding.key, binding.revision, None).await.unwrap();
    index.take(&roles, Change::Reset);
    assert!(bob_may_read(&rbac), "roles tell nothing about bindings");
    index.take(&bindings, Change::Reset);
    assert!(!bob_may_read(&rbac));
}
