"""Study `vgg_size`: does VGG-19 learn without batch norm if its layers have size 1?"""
