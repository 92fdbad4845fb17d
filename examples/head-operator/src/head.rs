//! The controller of Heads: apply the children, delete surplus ones, write the status.
//!
//! *Assumed*: it runs alone. Two instances would not harm each other, but do everything twice. Deletion is left
//! to the garbage collector.

pub mod plan;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
    runtime::controller::Action,
};

use crate::{
    api::{ChildA, Head},
    context::{ReconcileContext, ReconcileError, rejection_message},
    labels,
};

/// Reconciles one Head.
pub async fn reconcile(head: Arc<Head>, context: Arc<ReconcileContext>) -> Result<Action, ReconcileError> {
    if head.metadata.deletion_timestamp.is_some() || context.pending_writes.has_newer_than(&*head) {
        return Ok(Action::await_change());
    }
    let api = context.namespaced_api::<ChildA>(&*head);
    let applied = apply_children(&head, &api, &context).await;
    let outcome = match &applied {
        Ok(children) => Some(Ok(children.as_slice())),
        // A temporary error says nothing about the children.
        Err(error) => rejection_message(error).map(Err),
    };
    if let Some(outcome) = outcome {
        let status = plan::head_status(&head, outcome, Timestamp::now());
        context.update_status(&*head, status).await?;
    }
    applied.map_err(ReconcileError::Child)?;
    Ok(Action::requeue(context.resync_interval))
}

/// Applies the desired children, deletes surplus ones, and returns the applied ones.
async fn apply_children(head: &Head, api: &Api<ChildA>, context: &ReconcileContext) -> kube::Result<Vec<ChildA>> {
    let mut children = Vec::new();
    for child in plan::desired_children(head) {
        children.push(context.apply_child(head, api, child).await?);
    }
    delete_surplus_children(head, api).await?;
    Ok(children)
}

async fn delete_surplus_children(head: &Head, api: &Api<ChildA>) -> kube::Result<()> {
    let of_this_head = ListParams::default().labels(&format!("{}={}", labels::HEAD_LABEL, head.name_any()));
    let existing = api.list(&of_this_head).await?;
    for name in plan::surplus_children(head, &existing.items) {
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => {}
            // The child was deleted in the meantime.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
