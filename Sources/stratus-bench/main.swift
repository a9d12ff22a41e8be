let arguments = CommandLine.arguments.dropFirst()
await Benchmark.run(Array(arguments))
