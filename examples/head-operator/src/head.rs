//! The controller of Heads: fetch, plan, apply, delete what is too much, write the status.
//!
//! *Assumes* that it is alone: two at once would not harm each other, but do everything twice. Deletion is the garbage collector's.

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
    context::{Context, Error, refusal},
    labels,
};

/// Brings one Head nearer to what it asks for.
pub async fn reconcile(head: Arc<Head>, context: Arc<Context>) -> Result<Action, Error> {
    if head.metadata.deletion_timestamp.is_some() || context.written.is_newer_than(&*head) {
        return Ok(Action::await_change());
    }
    let api = context.beside::<ChildA>(&*head);
    let applied = apply(&head, &api, &context).await;
    let outcome = match &applied {
        Ok(children) => Some(Ok(children.as_slice())),
        // What may pass by itself says nothing about the children.
        Err(error) => refusal(error).map(Err),
    };
    if let Some(outcome) = outcome {
        let status = plan::status(&head, outcome, Timestamp::now());
        context.status(&*head, status).await?;
    }
    applied.map_err(Error::Child)?;
    Ok(Action::requeue(context.resync))
}

/// The children as they are now, those that are no longer asked for removed.
async fn apply(head: &Head, api: &Api<ChildA>, context: &Context) -> kube::Result<Vec<ChildA>> {
    let mut children = Vec::new();
    for child in plan::children(head) {
        children.push(context.apply(head, api, child).await?);
    }
    remove_superfluous(head, api).await?;
    Ok(children)
}

async fn remove_superfluous(head: &Head, api: &Api<ChildA>) -> kube::Result<()> {
    let of_this_head = ListParams::default().labels(&format!("{}={}", labels::HEAD, head.name_any()));
    let existing = api.list(&of_this_head).await?;
    for name in plan::superfluous(head, &existing.items) {
        match api.delete(&name, &DeleteParams::background()).await {
            // Somebody else was faster.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            answer => drop(answer?),
        }
    }
    Ok(())
}
