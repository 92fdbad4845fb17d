//! The controller of ChildA objects: apply the Deployment, then write the status, also after a rejection.

pub mod plan;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::{api::apps::v1::Deployment, jiff::Timestamp};
use kube::runtime::controller::Action;

use crate::{
    api::ChildA,
    context::{ReconcileContext, ReconcileError, rejection_message},
};

/// Reconciles one ChildA.
pub async fn reconcile(child: Arc<ChildA>, context: Arc<ReconcileContext>) -> Result<Action, ReconcileError> {
    if child.metadata.deletion_timestamp.is_some() || context.pending_writes.has_newer_than(&*child) {
        return Ok(Action::await_change());
    }
    let api = context.namespaced_api::<Deployment>(&*child);
    let applied = context.apply_child(&*child, &api, plan::desired_deployment(&child)).await;
    let outcome = match &applied {
        Ok(deployment) => Some(Ok(deployment)),
        // A temporary error says nothing about the Deployment.
        Err(error) => rejection_message(error).map(Err),
    };
    if let Some(outcome) = outcome {
        let status = plan::child_status(&child, outcome, Timestamp::now());
        context.update_status(&*child, status).await?;
    }
    applied.map_err(ReconcileError::Deployment)?;
    Ok(Action::requeue(context.resync_interval))
}
