//! The index after unobserved changes.

use serde_json::json;

use super::*;
use crate::{
    auth::{AuthorizationAttributes, UserInfo},
    store,
};

fn bob_may_read(rbac: &RbacAuthorizer) -> bool {
    let bob = UserInfo { name: "bob".into(), ..UserInfo::default() };
    rbac.decide(&AuthorizationAttributes::for_resource(&bob, "get", "", "pods").namespace("a")).is_allowed()
}

#[tokio::test]
async fn a_binding_that_went_unseen_grants_nothing_any_more() {
    let store = ObjectStore::open(store::Options::default()).unwrap();
    let rbac = RbacAuthorizer::default();
    let mut index = RbacUpdater { rbac: &rbac, store: &store, known: HashSet::new() };
    let roles = GroupResource::new(RBAC_GROUP, "roles");
    let bindings = GroupResource::new(RBAC_GROUP, "rolebindings");
    let role = json!({"metadata": {"name": "r", "namespace": "a"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let binding = json!({"metadata": {"name": "b", "namespace": "a"},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "User", "name": "bob"}]});
    let role = store.create(ObjectKey::new(roles.clone(), "a", "r"), role).await.unwrap();
    let binding = store.create(ObjectKey::new(bindings.clone(), "a", "b"), binding).await.unwrap();
    index.apply_change(&roles, ObjectChange::Set(role));
    index.apply_change(&bindings, ObjectChange::Set(Arc::clone(&binding)));
    index.apply_change(&bindings, ObjectChange::Reset);
    assert!(bob_may_read(&rbac), "what is there stays");

    store.delete(&binding.key, binding.revision, None).await.unwrap();
    index.apply_change(&roles, ObjectChange::Reset);
    assert!(bob_may_read(&rbac), "roles tell nothing about bindings");
    index.apply_change(&bindings, ObjectChange::Reset);
    assert!(!bob_may_read(&rbac));
}
