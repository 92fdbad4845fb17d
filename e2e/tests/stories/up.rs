//! Somebody tries Kubewake for the first time, or keeps it open all day.

mod browser;
mod demo;
mod document;
mod first;
mod interrupted;
mod ports;
mod restart;
mod rollout;
mod unprivileged;

use super::head_operator::parts;

/// All that comes of the sample Head, beneath the request that is told first.
const HEAD: &str = "
PATCH DEMO/heads/{:name} [apiserver] server x1
  stamp Head [kubewake-webhook] server x1
    converge Head [head-operator] internal x1
    reconcile Head [head-operator] consumer
      apply ChildA [head-operator] producer
        PATCH DEMO/childas/{:name} [head-operator] client
          PATCH DEMO/childas/{:name} [apiserver] server
            stamp ChildA [kubewake-webhook] server
        converge ChildA [head-operator] internal x2
        reconcile ChildA [head-operator] consumer
          apply Deployment [head-operator] producer
            PATCH APPS/deployments/{:name} [head-operator] client
              PATCH APPS/deployments/{:name} [apiserver] server
                stamp Deployment [kubewake-webhook] server
          <status of ChildA>
          <events>
      <list>
      <status of Head>
      <events>
";

/// The trace of the sample Head that is new.
fn new_head() -> String {
    parts::whole(HEAD)
}
