//! The controller of ChildA objects: plan, apply, write the status, also that of a refusal.

pub mod plan;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::{api::apps::v1::Deployment, jiff::Timestamp};
use kube::runtime::controller::Action;

use crate::{
    api::ChildA,
    context::{Context, Error, refusal},
};

/// Brings one ChildA nearer to what it asks for.
pub async fn reconcile(child: Arc<ChildA>, context: Arc<Context>) -> Result<Action, Error> {
    if child.metadata.deletion_timestamp.is_some() || context.written.is_newer_than(&*child) {
        return Ok(Action::await_change());
    }
    let api = context.beside::<Deployment>(&*child);
    let applied = context.apply(&*child, &api, plan::deployment(&child)).await;
    let outcome = match &applied {
        Ok(deployment) => Some(Ok(deployment)),
        // What may pass by itself says nothing about the Deployment.
        Err(error) => refusal(error).map(Err),
    };
    if let Some(outcome) = outcome {
        let status = plan::status(&child, outcome, Timestamp::now());
        context.status(&*child, status).await?;
    }
    applied.map_err(Error::Deployment)?;
    Ok(Action::requeue(context.resync))
}
