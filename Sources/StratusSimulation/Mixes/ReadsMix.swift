extension MixRecipe {
    /// Leaders that hear nobody, or whom nobody hears, are asked for what they hold.
    static let reads = MixRecipe { options, draw in
        options.faults = [.deafNode, .muteNode, .partition, .longDelay]
        if draw(0...1) == 0 { options.faults.formUnion([.transfer, .pause]) }
        options.clientCount = 8
        options.registerCount = 1
        options.readShare = 6
        options.readerCount = 4
        options.lateMessageOneIn = [100, 15][draw(0...1)] as UInt64
        options.aimsAtLeaders = true
        options.faultInterval = draw.milliseconds(600, 1_200)
        options.safetyTime = .seconds(draw(10...20))
    }
}
