//! The walls as an executor: commands that a human said yes to, and what is plain without a look inside.

use crate::house::{House, everyone};
use bailey_kernel::{Acted, BoxFuture, Executor, Io, Output, Permit, ResolveError, Route};
use bailey_protocol::{Action, Answer, Digest, Isolation, Report, SessionId, Status, WsPath};
use bailey_sandbox::Walls;
use bailey_testkit::{Bench, Setup};
use std::sync::{Arc, Mutex};

const ASK: &str = "[[rule]]\nname = \"ask\"\nanswer = \"review\"\nmatch = { action = \"exec\" }\n";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The walls, where another command of the session comes between the last look of the kernel and the start.
struct Late {
    house: Arc<House>,
    walls: Walls,
    between: Mutex<String>,
}

impl Executor for Late {
    fn routes(&self) -> Vec<Route> {
        self.walls.routes()
    }

    fn resolve<'a>(
        &'a self,
        session: SessionId,
        action: Action,
    ) -> BoxFuture<'a, Result<Action, ResolveError>> {
        self.walls.resolve(session, action)
    }

    fn named<'a>(
        &'a self,
        session: SessionId,
        action: &'a Action,
        isolation: &'a Isolation,
    ) -> BoxFuture<'a, Result<Option<Digest>, ResolveError>> {
        self.walls.named(session, action, isolation)
    }

    fn perform<'a>(&'a self, permit: Permit, io: Io) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            let line = self.between.lock().unwrap().clone();
            self.house.sh(&line).await;
            self.walls.perform(permit, io).await
        })
    }
}

/// Attack A11 at the last moment: the effect has begun when its script becomes another one.
#[tokio::test]
async fn what_an_approved_command_names_is_looked_at_once_more_inside() {
    for who in everyone() {
        let bench = Bench::new(Setup { rules: ASK.into(), bare: true, ..Setup::default() }).await;
        let mut house = House::with(who, |config| {
            let lease = config.sessions.values().next().unwrap().clone();
            config.sessions.insert(bench.session, lease);
        });
        house.session = bench.session;
        let house = Arc::new(house);
        let walls = Walls::new(house.native.clone(), bench.journal.seal(), "/nowhere".into(), PATH.into());
        let between = Mutex::default();
        let late = Arc::new(Late { house: house.clone(), walls, between });
        bench.registrar.register(vec![late.clone()]);
        // What the command does not name may change.
        for (file, runs) in [("deploy.sh", false), ("other.sh", true)] {
            house.sh("echo echo as approved > deploy.sh").await;
            let action = Action::Exec(house.command("sh ./deploy.sh"));
            let Acted::Waiting(id) = bench.kernel.act(&bench.scope(), action, &[]).await.unwrap() else {
                panic!("nobody was asked");
            };
            bench.kernel.answer(&bench.connection, id, Answer::Yes, "owner", "").await.unwrap();
            *late.between.lock().unwrap() = format!("echo echo TRICKED > new; mv new {file}");
            let Acted::Done(output) = bench.kernel.act_approved(&bench.scope(), id).await.unwrap() else {
                panic!("it did not begin");
            };
            match (output.report(), &output.outcome().status) {
                (Report::Exec(ran), Status::Done) => {
                    assert!(runs, "{who:?}: {}", ran.stdout.head.lossy());
                    assert_eq!(ran.stdout.head.lossy(), "as approved\n");
                }
                (_, Status::Failed { reason }) => {
                    assert!(!runs && reason.contains("is not what it was"), "{who:?}: {reason}");
                }
                other => panic!("{who:?}, {file}: {other:?}"),
            }
            // The control: where nobody said what it must be, what stands there by now runs.
            let ran = house.sh("sh ./deploy.sh").await.ok();
            assert_eq!(ran, if runs { "as approved" } else { "TRICKED" });
        }
    }
}

/// Nothing is called absent that a command would find, wherever that lies: the layer, a link's other end,
/// beside the project.
#[tokio::test]
async fn what_the_project_lacks_is_plain_while_the_layer_holds_nothing() {
    for who in everyone() {
        let bench = Bench::new(Setup { bare: true, ..Setup::default() }).await;
        let house = House::new(who);
        let walls = Walls::new(house.native.clone(), bench.journal.seal(), "/nowhere".into(), PATH.into());
        house.write("there/file", "");
        std::os::unix::fs::symlink("nowhere", house.project.join("dangling")).unwrap();
        std::os::unix::fs::symlink("/tmp", house.project.join("linked")).unwrap();
        let lacks = async |name: &str| {
            let path = WsPath(format!("{}/{name}", house.project.display()));
            walls.lacks(house.session, &path).await
        };
        // Nobody said that the session is new, so what its layer holds is not known.
        assert!(!lacks("absent").await);
        walls.begin(house.session);
        house.native.prepare(house.session).unwrap();
        for name in ["absent", "there/absent", "absent/below"] {
            assert!(lacks(name).await, "{who:?}: {name}");
        }
        for name in ["there", "there/file", "there/file/below", "dangling", "linked/absent", "../absent", ""]
        {
            assert!(!lacks(name).await, "{who:?}: {name}");
        }
        house.sh("mkdir made && echo x > made/file").await.ok();
        for name in ["made/file", "made", "absent"] {
            assert!(!lacks(name).await, "{who:?}: {name}");
        }
    }
}
