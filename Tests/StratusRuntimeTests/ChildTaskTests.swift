import StratusModel
import StratusRuntime
import Testing

/// What a request that is held does in child tasks.
@Suite struct ChildTaskTests {
    @Test func `a child runs where its parent does, and ends early with it`() async {
        let loop = EventLoop(name: "child")
        defer { loop.stop() }
        let parent = Task(executorPreference: loop) {
            await inChildTask {
                let isAtHome = loop.isCurrent
                try? await loop.sleep(for: .seconds(100))
                return (isAtHome, Task.isCancelled, loop.isCurrent)
            }
        }
        try? await Task.sleep(for: .milliseconds(20))
        parent.cancel()
        #expect(await parent.value == (true, true, true))
    }
}
