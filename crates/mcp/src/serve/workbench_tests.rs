//! What a workbench does where nobody says where it is.

use std::sync::Mutex;

use outpost_client::{
    HttpRequest, HttpResponse, Local, LocalOptions, Pending, Place, Process, ProcessEntry,
    Surroundings,
};

use super::*;

/// A place that says of itself to be here, or nothing.
struct Told {
    inner: Local,
    cwd: Option<&'static str>,
}

impl Place for Told {
    fn start(&self, start: Start) -> Pending<'_, Process> {
        self.inner.start(start)
    }

    fn attach(&self, id: &str, after_seq: u64) -> Pending<'_, Process> {
        self.inner.attach(id, after_seq)
    }

    fn processes(&self) -> Pending<'_, Vec<ProcessEntry>> {
        self.inner.processes()
    }

    fn environment(&self) -> Pending<'_, Surroundings> {
        Box::pin(async {
            let told = self.inner.environment().await?;
            Ok(Surroundings {
                cwd: self.cwd.map(|cwd| PathUri::from_path(Path::new(cwd))),
                ..told
            })
        })
    }

    fn files(&self) -> Files {
        self.inner.files()
    }

    fn http(&self, request: HttpRequest) -> Pending<'_, HttpResponse> {
        self.inner.http(request)
    }

    fn close(&self) -> Pending<'_, ()> {
        self.inner.close()
    }
}

/// A ground whose place is lost now and then, and is another one afterwards.
struct Shaky(Mutex<Arc<dyn Place>>);

impl Shaky {
    fn on(cwd: Option<&'static str>) -> Arc<Self> {
        Arc::new(Shaky(Mutex::new(place(cwd))))
    }
}

impl Ground for Shaky {
    fn place(&self) -> Pending<'_, Arc<dyn Place>> {
        let place = Arc::clone(&self.0.lock().unwrap());
        Box::pin(async move { Ok(place) })
    }
}

fn place(cwd: Option<&'static str>) -> Arc<dyn Place> {
    let inner = Local::new(LocalOptions::default()).unwrap();
    Arc::new(Told { inner, cwd })
}

fn setup(cwd: Option<&str>, confined: bool) -> Setup {
    let confinement = Confinement {
        profile: ":workspace".to_owned(),
        sandbox: Sandbox::workspace("/"),
    };
    Setup {
        cwd: cwd.map(str::to_owned),
        confinement: confined.then_some(confinement),
        ..Setup::default()
    }
}

#[tokio::test]
async fn what_is_confined_needs_a_directory_that_was_told() {
    for (told, chosen, workspace) in [
        (None, None, None),
        (None, Some("sub"), None),
        (None, Some("/given"), Some("/given")),
        (Some("/told"), None, Some("/told")),
        (Some("/told"), Some("sub/../other"), Some("/told/other")),
    ] {
        let bench = Workbench::new(Shaky::on(told), setup(chosen, true)).await;
        let found = match bench {
            Ok(bench) => Some(bench.sandbox().unwrap().policy().workspace_roots.clone()),
            Err(Error::NoDirectory) => None,
            Err(other) => panic!("{other:?}"),
        };
        let workspace = workspace.map(|path| vec![PathBuf::from(path)]);
        assert_eq!(found, workspace, "{told:?} {chosen:?}");
        let free = Workbench::new(Shaky::on(told), setup(chosen, false)).await;
        assert!(free.is_ok_and(|free| free.sandbox().is_none()));
    }
}

#[tokio::test]
async fn a_place_that_comes_back_elsewhere_moves_nothing_that_is_confined() {
    for (confined, base) in [(true, "/before"), (false, "/")] {
        let ground = Shaky::on(Some("/before"));
        let bench = Workbench::new(Arc::clone(&ground) as _, setup(None, confined)).await;
        let bench = bench.unwrap();
        *ground.0.lock().unwrap() = place(Some("/"));
        let footing = bench.footing().await.unwrap();
        assert_eq!(bench.path(&footing, None), Path::new(base));
        let sandbox = bench.sandbox();
        let roots = sandbox.map(|sandbox| sandbox.policy().workspace_roots.clone());
        assert_eq!(roots, confined.then(|| vec![PathBuf::from("/before")]));
    }
}
